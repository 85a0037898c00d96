import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

const listRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/sessions',
  component: lazyRouteComponent(() => import('./SessionsView.tsx'), 'SessionsView'),
});

export const sessionRoutes = [listRoute] as const;
