import { createHash } from 'node:crypto';
import type { Tables } from './table.ts';

/**
 * Raise it whenever a projection makes different rows from the same events
 * (test/unit/shared/readModels/version.logic.test.ts detects that), or turns get different words.
 */
export const PROJECTION_LOGIC = 11;

/** The columns of a checkpoint, which also identify the log. */
const CHECKPOINT = ['log_id', 'position', 'event_id', 'event_hash'];

/**
 * The tables and the projection logic of the read models in one database. Each version is stored
 * separately and filled from the log.
 */
export interface Version {
  tables: Tables;
  /** SQL that creates the empty tables. */
  ddl: string;
  /**
   * Below 2^28, to fit PostgreSQL's integers and advisory locks. Numbers have no order.
   */
  number: number;
}

/**
 * The version of these tables. A change of the description, the SQL or the logic changes its number.
 */
export const versionOf = (tables: Tables, ddl: string, logic = PROJECTION_LOGIC): Version => ({
  tables,
  ddl,
  number:
    createHash('sha256')
      .update(JSON.stringify([logic, CHECKPOINT, tables, ddl]))
      .digest()
      .readUInt32BE() >>> 4,
});
