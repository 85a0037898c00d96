import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

/** What the address of the audit view selects. */
export interface AuditSearch {
  /** The session to verify. */
  session?: string;
  /** The subject whose receipt of erasure is shown. */
  receipt?: string;
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined;

function parseAuditSearch(search: Record<string, unknown>): AuditSearch {
  const session = textOf(search['session']);
  const receipt = textOf(search['receipt']);
  return { ...(session !== undefined && { session }), ...(receipt !== undefined && { receipt }) };
}

const auditRoute = createRoute({
  getParentRoute: () => shellRoute,
  path: '/audit',
  validateSearch: parseAuditSearch,
  component: lazyRouteComponent(() => import('./AuditView.tsx'), 'AuditView'),
});

export const auditRoutes = [auditRoute] as const;
