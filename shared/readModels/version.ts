import { createHash } from 'node:crypto';
import type { Tables } from './table.ts';

/**
 * To be raised whenever a projection makes other rows of the same events
 * (test/unit/shared/readModels/version.logic.test.ts says when), or turns have other words.
 */
export const PROJECTION_LOGIC = 6;

/** What is kept of how far they are, and so of which log they are of. */
const CHECKPOINT = ['log_id', 'position', 'event_id', 'event_hash'];

/**
 * The read models' shape and logic in one database. What has another number is kept apart and
 * filled from the log.
 */
export interface Version {
  tables: Tables;
  /** The SQL that makes the tables, empty. */
  ddl: string;
  /**
   * Below 2^28, so that PostgreSQL's integers and advisory locks can carry it. Numbers have no
   * order.
   */
  number: number;
}

/**
 * The version of these tables. Whatever changes the description, the SQL or the logic changes its
 * number.
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
