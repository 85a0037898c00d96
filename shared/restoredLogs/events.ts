import { Type } from 'typebox';
import { eventSchema, type EventOf } from '../domain/schema.ts';

export const RestoreAccepted = eventSchema(
  'log.restore_accepted.v1',
  {
    replaces: Type.Array(Type.String(), {
      minItems: 1,
      description: 'The ids of the logs that this one stands for from now on',
    }),
    reason: Type.String({ description: 'What the operator says about it' }),
  },
  'An operator declared the log, which is not what its followers knew, to be the one to follow',
);

export const logEventSchemas = [RestoreAccepted] as const;

export type LogEvent = EventOf<(typeof logEventSchemas)[number]>;
