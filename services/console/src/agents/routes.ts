import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

type Search = Record<string, unknown>;
const getParentRoute = () => shellRoute;

const isRevision = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0;

export const agentRoutes = [
  createRoute({
    getParentRoute,
    path: '/agents',
    // The router reads digits as a number.
    validateSearch: ({ name = '' }: Search): { name?: string } =>
      ['string', 'number'].includes(typeof name) && name !== '' ? { name: String(name) } : {},
    component: lazyRouteComponent(() => import('./AgentsView.tsx'), 'AgentsView'),
  }),
  createRoute({
    getParentRoute,
    path: '/agents/new',
    validateSearch: ({ example }: Search): { example?: true } =>
      example === true ? { example } : {},
    component: lazyRouteComponent(() => import('./EditAgentView.tsx'), 'NewAgentView'),
  }),
  createRoute({
    getParentRoute,
    path: '/agents/$agentId',
    component: lazyRouteComponent(() => import('./AgentView.tsx'), 'AgentView'),
  }),
  createRoute({
    getParentRoute,
    path: '/agents/$agentId/edit',
    component: lazyRouteComponent(() => import('./EditAgentView.tsx'), 'EditAgentView'),
  }),
  createRoute({
    getParentRoute,
    path: '/agents/$agentId/revisions',
    validateSearch: ({ from, to }: Search): { from?: number; to?: number } => ({
      ...(isRevision(from) && { from }),
      ...(isRevision(to) && { to }),
    }),
    component: lazyRouteComponent(() => import('./RevisionsView.tsx'), 'RevisionsView'),
  }),
] as const;
