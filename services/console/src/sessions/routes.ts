import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { queryClient } from '../api/queryClient.ts';
import { shellRoute } from '../shell/routes.tsx';
import { sessionQuery } from './session/sessionQueries.ts';
import { parseListSearch, parseSessionSearch } from './search.ts';

export const sessionListRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/sessions',
  validateSearch: parseListSearch,
  component: lazyRouteComponent(() => import('./SessionsView.tsx'), 'SessionsView'),
});

export const sessionRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/sessions/$sessionId',
  validateSearch: parseSessionSearch,
  // The session is read while the scripts of its view are loaded.
  loader: ({ params: { sessionId } }) => void queryClient.prefetchQuery(sessionQuery(sessionId)),
  component: lazyRouteComponent(() => import('./session/SessionView.tsx'), 'SessionView'),
});

export const sessionRoutes = [sessionListRoute, sessionRoute] as const;
