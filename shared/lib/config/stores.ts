import { Type } from '../../domain/jsonSchema.ts';

/** Options of the stores for the log and the read models. */
export const storeOptions = {
  DATA_DIR: Type.String({
    default: './data',
    description: 'Folder of the embedded event store and read models',
  }),
  EVENTSTOREDB_URL: Type.Optional(
    Type.String({
      pattern: '^(esdb|kurrentdb)(\\+discover)?://',
      'x-rule': 'must begin with esdb://, esdb+discover://, kurrentdb:// or kurrentdb+discover://',
      description: 'Connection string of an EventStoreDB or KurrentDB cluster for the log',
    }),
  ),
  STORE_WAIT_MS: Type.Integer({
    default: 10_000,
    minimum: 1_000,
    maximum: 120_000,
    description:
      'How long a request waits for EventStoreDB in total, a run since its last recorded event, then 503 `store_unavailable`',
  }),
  DATABASE_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://',
      'x-rule': 'must begin with postgres:// or postgresql://',
      description:
        'Connection string of a PostgreSQL database for the read models of any number of processes; needs EVENTSTOREDB_URL',
    }),
  ),
  KEYS_DIR: Type.Optional(
    Type.String({
      description:
        'Folder of `keys.db` and `master.key`; default the data folder. Not used with `DATABASE_URL`',
    }),
  ),
  MASTER_KEY_FILE: Type.Optional(
    Type.String({
      description:
        'File of the master keys for texts. Required with `DATABASE_URL`; default `master.key` beside `keys.db`',
    }),
  ),
  DATABASE_POOL_SIZE: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 1_000,
    description: 'Maximum connections for queries per process',
  }),
  DATABASE_CLOCK_INDEPENDENT: Type.Boolean({
    default: false,
    description:
      'PostgreSQL has the clock of another machine: retention may trust both while they agree',
  }),
  RETENTION_CONFIRM_PERCENT: Type.Integer({
    default: 20,
    minimum: 1,
    maximum: 100,
    description:
      'Retention asks an operator before it erases more than this share of sessions at once; 100: never',
  }),
  VISIBILITY_WAIT_MS: Type.Integer({
    default: 2_000,
    minimum: 0,
    maximum: 60_000,
    description:
      'How long a write waits for the read models; in one process, how long its queries wait for turns and new agents',
  }),
};
