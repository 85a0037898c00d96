import type { Tables } from '../../../shared/readModels/table.ts';
import { TABLES } from '../../../shared/readModels/tables.ts';
import { versionOf, type Version } from '../../../shared/readModels/version.ts';
import { ddlOf } from './statements.ts';

/**
 * The version that SQLite keeps these tables under: another one has files of its own, and nothing
 * is ever migrated.
 */
export const sqliteVersion = (tables: Tables, logic?: number): Version =>
  versionOf(tables, ddlOf(tables), logic);

/** This release's. */
export const VERSION = sqliteVersion(TABLES);
