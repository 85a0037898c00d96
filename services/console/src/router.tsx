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
import { PAGE_SIZES, sessionQuery, turnPageQuery } from './sessions/session/sessionQueries.ts';
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

/** A view at a path; `validateSearch` parses the part of its address that is not in the path. */
const view = <const Path extends string, Module extends object, Shown = object>(
  path: Path,
  load: () => Promise<Module>,
  name: keyof Module,
  validateSearch: (search: Search) => Shown = () => ({}) as Shown,
) => createRoute({ getParentRoute, path, component: lazy(load, name), validateSearch });

const routes = [
  createRoute({
    getParentRoute,
    path: '/',
    beforeLoad: () => {
      throw redirect({ to: '/agents' });
    },
  }),
  view(
    '/agents',
    () => import('./agents/AgentsView.tsx'),
    'AgentsView',
    ({ name }) => defined({ name: searchText(name) }),
  ),
  view(
    '/agents/new',
    () => import('./agents/EditAgentView.tsx'),
    'NewAgentView',
    ({ example }): { example?: true } => (example === true ? { example } : {}),
  ),
  view('/agents/$agentId', () => import('./agents/AgentView.tsx'), 'AgentView'),
  view('/agents/$agentId/edit', () => import('./agents/EditAgentView.tsx'), 'EditAgentView'),
  view(
    '/agents/$agentId/revisions',
    () => import('./agents/RevisionsView.tsx'),
    'RevisionsView',
    ({ from, to }) => defined({ from: searchNumber(from, 0), to: searchNumber(to, 0) }),
  ),
  view('/chat/$agentId', () => import('./chat/ChatView.tsx'), 'ChatView', parseChatSearch),
  view('/sessions', () => import('./sessions/SessionsView.tsx'), 'SessionsView', parseListSearch),
  createRoute({
    getParentRoute,
    path: '/sessions/$sessionId',
    validateSearch: parseSessionSearch,
    loaderDeps: ({ search: { turn } }) => ({ turn }),
    // The session and the turn to show are read while the scripts of the view are loaded.
    loader: ({ params: { sessionId }, deps: { turn } }) => {
      void queryClient.prefetchQuery(sessionQuery(sessionId));
      if (turn === undefined) return;
      // Few sessions begin later: those forks whose earlier turns were erased.
      const page = Math.floor((turn - 1) / PAGE_SIZES.turns);
      void queryClient.prefetchQuery(turnPageQuery(sessionId, 1, page));
    },
    component: lazy(() => import('./sessions/session/SessionView.tsx'), 'SessionView'),
  }),
  view('/replays', () => import('./replays/ReplaysView.tsx'), 'ReplaysView'),
  view(
    '/replays/new',
    () => import('./replays/NewReplayView.tsx'),
    'NewReplayView',
    parseNewReplaySearch,
  ),
  view(
    '/replays/$replayId',
    () => import('./replays/ReplayView.tsx'),
    'ReplayView',
    parseReplaySearch,
  ),
  view(
    '/audit',
    () => import('./audit/AuditView.tsx'),
    'AuditView',
    // The session to verify.
    ({ session }) => defined({ session: searchText(session) }),
  ),
  view('/usage', () => import('./usage/UsageView.tsx'), 'UsageView', parseUsageSearch),
  view('/system', () => import('./system/SystemView.tsx'), 'SystemView'),
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
