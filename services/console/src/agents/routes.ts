import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

const listRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/agents',
  component: lazyRouteComponent(() => import('./AgentsView.tsx'), 'AgentsView'),
});

export const agentRoutes = [listRoute] as const;
