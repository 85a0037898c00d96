import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

interface ChatSearch {
  /** The sessions side by side, with commas; a name that begins with `new` is one to be started. */
  sessions?: string;
  /** The session that a phone shows, as one of the names in `sessions`. */
  shown?: string;
}

const chatRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/chat/$agentId',
  validateSearch: ({ sessions, shown }: Record<string, unknown>): ChatSearch => ({
    ...(typeof sessions === 'string' && sessions !== '' && { sessions }),
    ...(typeof shown === 'string' && { shown }),
  }),
  component: lazyRouteComponent(() => import('./ChatView.tsx'), 'ChatView'),
});

export const chatRoutes = [chatRoute] as const;
