import { defineStream, type Feature } from '../domain/feature.ts';
import { auditEventSchemas } from './events.ts';

/** Without a projection: `events tail` and exports read the stream itself. */
export const audits = {
  stream: defineStream('audit', auditEventSchemas, { typePrefix: 'account.audited.' }),
} as const satisfies Feature;
