import { createRouter } from '@tanstack/react-router';
import { agentRoutes } from './agents/routes.ts';
import { auditRoutes } from './audit/routes.ts';
import { chatRoutes } from './chat/routes.ts';
import { replayRoutes } from './replays/routes.ts';
import { sessionRoutes } from './sessions/routes.ts';
import { indexRoute, shellRoute } from './shell/routes.tsx';
import { systemRoutes } from './system/routes.ts';
import { usageRoutes } from './usage/routes.ts';

const routeTree = shellRoute.addChildren([
  indexRoute,
  ...agentRoutes,
  ...chatRoutes,
  ...sessionRoutes,
  ...replayRoutes,
  ...auditRoutes,
  ...usageRoutes,
  ...systemRoutes,
]);

/** The router of the console: each view is a link that can be shared. */
export const router = createRouter({
  routeTree,
  basepath: '/console',
  defaultPreload: 'intent',
  scrollRestoration: false,
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
