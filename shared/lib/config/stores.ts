import { Type } from 'typebox';

/** Options of the stores for the log and the read models. */
export const storeOptions = {
  DATA_DIR: Type.String({
    default: './data',
    description: 'Folder of the embedded event store and read models',
  }),
  EVENTSTOREDB_URL: Type.Optional(
    Type.String({
      pattern: '^(esdb|kurrentdb)(\\+discover)?://',
      description:
        'Connection string of an EventStoreDB or KurrentDB cluster that keeps the log instead of the embedded store',
    }),
  ),
  STORE_WAIT_MS: Type.Integer({
    default: 10_000,
    minimum: 1_000,
    maximum: 120_000,
    description:
      'With `EVENTSTOREDB_URL`: how long a request waits for the event store in all its appends and reads, then 503 `store_unavailable`. While the cluster is known to have no quorum, or no node could be used for so long, the answer comes at once',
  }),
  DATABASE_URL: Type.Optional(
    Type.String({
      pattern: '^postgres(ql)?://',
      description:
        'Connection string of a PostgreSQL database that keeps the read models, so that any number of processes can share them; needs EVENTSTOREDB_URL',
    }),
  ),
  KEYS_DIR: Type.Optional(
    Type.String({
      description:
        'Folder of `keys.db` and `master.key`, made at the first start; the data folder without it. Not used where `DATABASE_URL` is',
    }),
  ),
  MASTER_KEY_FILE: Type.Optional(
    Type.String({
      description:
        'File of the master keys that wrap the keys of texts, one a line; the first one wraps new keys. Must be set where `DATABASE_URL` is; else `master.key` beside `keys.db`, made at the first start',
    }),
  ),
  DATABASE_POOL_SIZE: Type.Integer({
    default: 10,
    minimum: 1,
    maximum: 1_000,
    description: 'The most connections of a process that answer queries; a few more do the rest',
  }),
  DATABASE_CLOCK_INDEPENDENT: Type.Boolean({
    default: false,
    description:
      'PostgreSQL runs on another machine than the services and has another clock. While both clocks agree, retention uses them after a stop as well',
  }),
  RETENTION_CONFIRM_PERCENT: Type.Integer({
    default: 20,
    minimum: 1,
    maximum: 100,
    description:
      'When more than this share of an account’s sessions, and more than 100, are past their maximum at once, they are erased only after an operator has confirmed it; 100: without asking',
  }),
  VISIBILITY_WAIT_MS: Type.Integer({
    default: 2_000,
    minimum: 0,
    maximum: 60_000,
    description:
      'How long a write waits for the read models to show it before it is answered all the same; in one process, how long queries of sessions wait for the turns that were answered',
  }),
};
