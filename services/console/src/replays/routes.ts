import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';
import { parseNewReplaySearch, parseReplaySearch } from './search.ts';

const getParentRoute = () => shellRoute;

export const replayRoutes = [
  createRoute({
    getParentRoute,
    path: '/replays',
    component: lazyRouteComponent(() => import('./ReplaysView.tsx'), 'ReplaysView'),
  }),
  createRoute({
    getParentRoute,
    path: '/replays/new',
    validateSearch: parseNewReplaySearch,
    component: lazyRouteComponent(() => import('./NewReplayView.tsx'), 'NewReplayView'),
  }),
  createRoute({
    getParentRoute,
    path: '/replays/$replayId',
    validateSearch: parseReplaySearch,
    component: lazyRouteComponent(() => import('./ReplayView.tsx'), 'ReplayView'),
  }),
] as const;
