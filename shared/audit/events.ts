import { Type } from '../domain/jsonSchema.ts';
import { eventSchema, type EventOf } from '../domain/schema.ts';

/** Actions recorded in an account's audit: reading, proving, exporting and erasing events. */
const AUDITED_ACTIONS = ['read', 'proof', 'export', 'erase'] as const;

const AccountAudited = eventSchema(
  'account.audited.v1',
  {
    action: Type.Enum(AUDITED_ACTIONS),
    subject: Type.String({ description: 'The name of the stream that it concerned' }),
    detail: Type.Optional(Type.String({ maxLength: 256, description: 'Never text of a person' })),
  },
  'Somebody read, proved, exported or erased recorded events; the metadata say who',
);

export const auditEventSchemas = [AccountAudited] as const;

/** True for the type of an event in an audit. */
export const isAudit = ({ type }: { type: string }): boolean => type === 'account.audited.v1';

export type AuditEvent = EventOf<(typeof auditEventSchemas)[number]>;
export type AuditData = AuditEvent['data'];
