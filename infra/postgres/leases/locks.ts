/**
 * The advisory locks of Turnlog, as the two integers that PostgreSQL takes. They belong to one
 * database, so Turnlog installations in different databases of a server do not conflict.
 */

/** "turn" in ASCII, which avoids conflicts with other users of advisory locks. */
const SPACE = 0x7475726e;

/** Held until the end of the transaction while the schema is checked or changed. */
export const SCHEMA_LOCK = `${SPACE}, 0`;

/** Held by the process that grows the transparency log. */
export const PROVER_LOCK = `${SPACE}, 1`;

/** Held by the one process that sweeps sessions past their retention. */
export const RETENTION_LOCK = `${SPACE}, 2`;

/** Held by the one process that sends to webhooks. */
export const WEBHOOKS_LOCK = `${SPACE}, 3`;

/** Held by the one process that runs replays. */
export const REPLAYS_LOCK = `${SPACE}, 4`;

/**
 * A generation of the read models: the one that answers queries once it is complete, or the one
 * that a rebuild fills. The column of turnlog.projections is called `slot`.
 */
export type GenerationStage = 'live' | 'building';

/**
 * Held by the one session that writes a generation of a version: by the active projector for the
 * live one, by a rebuild for the one that it builds.
 */
export const writerLock = (version: number, stage: GenerationStage): string =>
  `${SPACE}, ${version * 4 + (stage === 'live' ? 1 : 2)}`;

/**
 * Shared by all processes that answer queries from a version, so that no other release drops it.
 */
export const readersLock = (version: number): string => `${SPACE}, ${version * 4 + 3}`;

/**
 * SQL for FROM: the versions, as `held.version`, whose live generation a session is writing or
 * answers queries from.
 */
export const lockIsHeldBy = (holder: 'writer' | 'readers'): string =>
  `(SELECT DISTINCT (objid::bigint / 4)::integer AS version FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND classid::bigint = ${SPACE} AND objsubid = 2
      AND objid::bigint > 3 AND objid::bigint % 4 = ${holder === 'writer' ? 1 : 3}
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS held`;
