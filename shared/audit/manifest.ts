import { defineStream, type Feature } from '../domain/feature.ts';
import { auditEventSchemas } from './events.ts';
import { AUDIT_LIMITS } from './limits.ts';

/** Without a projection: `events tail` and exports read the stream itself. */
export const audits = {
  stream: defineStream('audit', auditEventSchemas, { typePrefix: 'account.audited.' }),
  limits: AUDIT_LIMITS,
} as const satisfies Feature;
