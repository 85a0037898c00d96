import { Type } from '../../domain/jsonSchema.ts';
import { eventSchema, INSTANT, type EventOf } from '../../domain/schema.ts';

/** The proven time, and how it compares with earlier ones. */
const ProvenTime = {
  time: Type.String({
    format: 'date-time',
    ...INSTANT,
    description: 'At least this much time has passed, whatever the clock of the service said',
  }),
  confirmations: Type.Integer({
    minimum: 0,
    description: 'How often an operator has confirmed the clock so far',
  }),
  from_revision: Type.Integer({
    minimum: 0,
    description: 'The times of this stream increase from this revision on',
  }),
};

const Reason = Type.String({
  maxLength: 256,
  description: 'What the operator says about it; never text of a person',
});

const TimeKept = eventSchema(
  'retention.time_kept.v1',
  ProvenTime,
  'The service recorded how much time has passed for certain, by which sessions are kept and erased',
);
const TimeConfirmed = eventSchema(
  'retention.time_confirmed.v1',
  { ...ProvenTime, reason: Reason },
  'An operator confirmed that the clock is right',
);
const ErasuresConfirmed = eventSchema(
  'retention.erasures_confirmed.v1',
  {
    before: Type.String({
      format: 'date-time',
      ...INSTANT,
      description: 'Sessions of the account that were last active before this time may be erased',
    }),
    reason: Reason,
  },
  'An operator confirmed that the many sessions of an account that are past their maximum may be erased',
);

export const retentionEventSchemas = [TimeKept, TimeConfirmed, ErasuresConfirmed] as const;

export type RetentionEvent = EventOf<(typeof retentionEventSchemas)[number]>;
