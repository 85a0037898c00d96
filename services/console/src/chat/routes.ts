import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

const listRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/chat/$agentId',
  component: lazyRouteComponent(() => import('./ChatView.tsx'), 'ChatView'),
});

export const chatRoutes = [listRoute] as const;
