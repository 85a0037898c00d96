import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';
import { parseNewReplaySearch, parseReplaySearch } from './search.ts';

const listRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/replays',
  component: lazyRouteComponent(() => import('./ReplaysView.tsx'), 'ReplaysView'),
});

const newReplayRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/replays/new',
  validateSearch: parseNewReplaySearch,
  component: lazyRouteComponent(() => import('./NewReplayView.tsx'), 'NewReplayView'),
});

const replayRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/replays/$replayId',
  validateSearch: parseReplaySearch,
  component: lazyRouteComponent(() => import('./ReplayView.tsx'), 'ReplayView'),
});

export const replayRoutes = [listRoute, newReplayRoute, replayRoute] as const;
