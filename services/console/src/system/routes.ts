import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

export const systemRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/system',
    component: lazyRouteComponent(() => import('./SystemView.tsx'), 'SystemView'),
  }),
] as const;
