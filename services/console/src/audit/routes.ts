import { createRoute, lazyRouteComponent } from '@tanstack/react-router';
import { shellRoute } from '../shell/routes.tsx';

export const auditRoutes = [
  createRoute({
    getParentRoute: () => shellRoute,
    path: '/audit',
    /** The session to verify. */
    validateSearch: ({ session }: Record<string, unknown>): { session?: string } =>
      typeof session === 'string' ? { session } : {},
    component: lazyRouteComponent(() => import('./AuditView.tsx'), 'AuditView'),
  }),
] as const;
