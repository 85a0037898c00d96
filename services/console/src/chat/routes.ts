import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';
import { parseChatSearch } from './panes.ts';

export const chatRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/chat/$agentId',
    validateSearch: parseChatSearch,
    component: lazyRouteComponent(() => import('./ChatView.tsx'), 'ChatView'),
  }),
] as const;
