import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

const listRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/system',
  component: lazyRouteComponent(() => import('./SystemView.tsx'), 'SystemView'),
});

export const systemRoutes = [listRoute] as const;
