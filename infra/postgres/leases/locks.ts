/**
 * The advisory locks of Turnlog, as the two integers that PostgreSQL takes. They belong to one
 * database: two Turnlogs in two databases of a server don't meet.
 */

/** "turn" in ASCII, to stay clear of other users of advisory locks. */
const SPACE = 0x7475726e;

/** Held, while the schema is looked at or changed, until the transaction ends. */
export const SCHEMA_LOCK = `${SPACE}, 0`;

/** Held by the process that grows the transparency log. */
export const PROVER_LOCK = `${SPACE}, 1`;

/** Held by the one process that sweeps for sessions past their retention. */
export const RETENTION_LOCK = `${SPACE}, 2`;

/** Held by the one process that sends to webhooks. */
export const WEBHOOKS_LOCK = `${SPACE}, 3`;

/** Held by the one process that runs replays. */
export const REPLAYS_LOCK = `${SPACE}, 4`;

/**
 * Which generation of the read models: the one that queries are answered from once it is complete,
 * or the one that a rebuild fills. The column of turnlog.projections is called `slot`.
 */
export type Stage = 'live' | 'building';

/**
 * One session writes a generation of a version: the active projector the live one, a rebuild the
 * one that it builds.
 */
export const writerLock = (version: number, stage: Stage): string =>
  `${SPACE}, ${version * 4 + (stage === 'live' ? 1 : 2)}`;

/**
 * Shared by all processes that answer queries from a version, so that no other release drops it.
 */
export const readersLock = (version: number): string => `${SPACE}, ${version * 4 + 3}`;

/**
 * For FROM: the versions, as `held.version`, whose live generation a session writes now, or is
 * answered from.
 */
export const lockIsHeldBy = (holder: 'writer' | 'readers'): string =>
  `(SELECT DISTINCT (objid::bigint / 4)::integer AS version FROM pg_locks
    WHERE locktype = 'advisory' AND granted AND classid::bigint = ${SPACE} AND objsubid = 2
      AND objid::bigint > 3 AND objid::bigint % 4 = ${holder === 'writer' ? 1 : 3}
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS held`;
