import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';
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
  component: lazyRouteComponent(() => import('./session/SessionView.tsx'), 'SessionView'),
});

export const sessionRoutes = [sessionListRoute, sessionRoute] as const;
