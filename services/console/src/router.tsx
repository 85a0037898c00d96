import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent as lazy,
  redirect,
} from '@tanstack/react-router';
import { queryClient } from './api/queryClient.ts';
import { parseChatSearch } from './chat/panes.ts';
import { defined, searchNumber, searchText, type Search } from './components/searchParams.ts';
import { EmptyState, ErrorState } from './components/view.tsx';
import { parseNewReplaySearch, parseReplaySearch } from './replays/search.ts';
import { parseListSearch, parseSessionSearch } from './sessions/search.ts';
import { sessionQuery } from './sessions/session/sessionQueries.ts';
import { Shell } from './shell/Shell.tsx';
import { parseUsageSearch } from './usage/search.ts';

/** The frame of all views. */
const shellRoute = createRootRoute({
  component: Shell,
  errorComponent: ({ error, reset }) => <ErrorState error={error} onRetry={reset} />,
  notFoundComponent: () => (
    <EmptyState title="There is no such view">Choose one from the menu.</EmptyState>
  ),
});
const getParentRoute = () => shellRoute;

const routes = [
  createRoute({
    getParentRoute,
    path: '/',
    beforeLoad: () => {
      throw redirect({ to: '/agents' });
    },
  }),
  createRoute({
    getParentRoute,
    path: '/agents',
    validateSearch: ({ name }: Search) => defined({ name: searchText(name) }),
    component: lazy(() => import('./agents/AgentsView.tsx'), 'AgentsView'),
  }),
  createRoute({
    getParentRoute,
    path: '/agents/new',
    validateSearch: ({ example }: Search): { example?: true } =>
      example === true ? { example } : {},
    component: lazy(() => import('./agents/EditAgentView.tsx'), 'NewAgentView'),
  }),
  createRoute({
    getParentRoute,
    path: '/agents/$agentId',
    component: lazy(() => import('./agents/AgentView.tsx'), 'AgentView'),
  }),
  createRoute({
    getParentRoute,
    path: '/agents/$agentId/edit',
    component: lazy(() => import('./agents/EditAgentView.tsx'), 'EditAgentView'),
  }),
  createRoute({
    getParentRoute,
    path: '/agents/$agentId/revisions',
    validateSearch: ({ from, to }: Search) =>
      defined({ from: searchNumber(from, 0), to: searchNumber(to, 0) }),
    component: lazy(() => import('./agents/RevisionsView.tsx'), 'RevisionsView'),
  }),
  createRoute({
    getParentRoute,
    path: '/chat/$agentId',
    validateSearch: parseChatSearch,
    component: lazy(() => import('./chat/ChatView.tsx'), 'ChatView'),
  }),
  createRoute({
    getParentRoute,
    path: '/sessions',
    validateSearch: parseListSearch,
    component: lazy(() => import('./sessions/SessionsView.tsx'), 'SessionsView'),
  }),
  createRoute({
    getParentRoute,
    path: '/sessions/$sessionId',
    validateSearch: parseSessionSearch,
    // The session is read while the scripts of its view are loaded.
    loader: ({ params: { sessionId } }) => void queryClient.prefetchQuery(sessionQuery(sessionId)),
    component: lazy(() => import('./sessions/session/SessionView.tsx'), 'SessionView'),
  }),
  createRoute({
    getParentRoute,
    path: '/replays',
    component: lazy(() => import('./replays/ReplaysView.tsx'), 'ReplaysView'),
  }),
  createRoute({
    getParentRoute,
    path: '/replays/new',
    validateSearch: parseNewReplaySearch,
    component: lazy(() => import('./replays/NewReplayView.tsx'), 'NewReplayView'),
  }),
  createRoute({
    getParentRoute,
    path: '/replays/$replayId',
    validateSearch: parseReplaySearch,
    component: lazy(() => import('./replays/ReplayView.tsx'), 'ReplayView'),
  }),
  createRoute({
    getParentRoute,
    path: '/audit',
    /** The session to verify. */
    validateSearch: ({ session }: Search) => defined({ session: searchText(session) }),
    component: lazy(() => import('./audit/AuditView.tsx'), 'AuditView'),
  }),
  createRoute({
    getParentRoute,
    path: '/usage',
    validateSearch: parseUsageSearch,
    component: lazy(() => import('./usage/UsageView.tsx'), 'UsageView'),
  }),
  createRoute({
    getParentRoute,
    path: '/system',
    component: lazy(() => import('./system/SystemView.tsx'), 'SystemView'),
  }),
] as const;

/** The router of the console: each view is a link that can be shared. */
export const router = createRouter({
  routeTree: shellRoute.addChildren(routes),
  basepath: '/console',
  defaultPreload: 'intent',
  scrollRestoration: false,
  // Views get no parameter that the parser of their address left out.
  search: { strict: true },
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
