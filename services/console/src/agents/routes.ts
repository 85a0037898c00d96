import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

interface AgentsSearch {
  name?: string;
}

const listRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/agents',
  validateSearch: ({ name }: Record<string, unknown>): AgentsSearch =>
    // The router reads digits as a number.
    (typeof name === 'string' && name !== '') || typeof name === 'number'
      ? { name: String(name) }
      : {},
  component: lazyRouteComponent(() => import('./AgentsView.tsx'), 'AgentsView'),
});

const createAgentRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/agents/new',
  validateSearch: ({ example }: Record<string, unknown>): { example?: true } =>
    example === true ? { example } : {},
  component: lazyRouteComponent(() => import('./EditAgentView.tsx'), 'NewAgentView'),
});

const agentRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/agents/$agentId',
  component: lazyRouteComponent(() => import('./AgentView.tsx'), 'AgentView'),
});

const editRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/agents/$agentId/edit',
  component: lazyRouteComponent(() => import('./EditAgentView.tsx'), 'EditAgentView'),
});

interface RevisionsSearch {
  from?: number;
  to?: number;
}

const isRevision = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) >= 0;

const revisionsRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/agents/$agentId/revisions',
  validateSearch: ({ from, to }: Record<string, unknown>): RevisionsSearch => ({
    ...(isRevision(from) && { from }),
    ...(isRevision(to) && { to }),
  }),
  component: lazyRouteComponent(() => import('./RevisionsView.tsx'), 'RevisionsView'),
});

export const agentRoutes = [
  listRoute,
  createAgentRoute,
  agentRoute,
  editRoute,
  revisionsRoute,
] as const;
