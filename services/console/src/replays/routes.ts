import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

const listRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/replays',
  component: lazyRouteComponent(() => import('./ReplaysView.tsx'), 'ReplaysView'),
});

export const replayRoutes = [listRoute] as const;
