import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

const listRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/usage',
  component: lazyRouteComponent(() => import('./UsageView.tsx'), 'UsageView'),
});

export const usageRoutes = [listRoute] as const;
