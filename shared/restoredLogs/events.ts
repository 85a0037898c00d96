import { Type } from '../domain/jsonSchema.ts';
import { eventSchema, type EventOf } from '../domain/schema.ts';

const RestoreAccepted = eventSchema(
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

const TreeDeclared = eventSchema(
  'log.tree_declared.v1',
  {
    origin: Type.String({ description: 'The origin of the checkpoints of the tree' }),
    vkeys: Type.Array(Type.String(), {
      minItems: 1,
      description: 'The keys that sign them, as C2SP vkeys, which contain the key ids',
    }),
  },
  'The log is signed from now on under this origin and with these keys. Appended before the first checkpoint of the tree is signed, and again when keys were added',
);

const TreeReplaced = eventSchema(
  'log.tree_replaced.v1',
  {
    replaces: Type.Array(Type.String(), {
      description: 'The origins of the trees that are not continued',
    }),
    reason: Type.String({ description: 'What the operator says about it' }),
  },
  'An operator declared that another tree begins, under an origin with the id of this event',
);

export const logEventSchemas = [RestoreAccepted, TreeDeclared, TreeReplaced] as const;

export type LogEvent = EventOf<(typeof logEventSchemas)[number]>;
