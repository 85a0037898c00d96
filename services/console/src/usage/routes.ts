import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';
import { parseUsageSearch } from './search.ts';

export const usageRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/usage',
  validateSearch: parseUsageSearch,
  component: lazyRouteComponent(() => import('./UsageView.tsx'), 'UsageView'),
});

export const usageRoutes = [usageRoute] as const;
