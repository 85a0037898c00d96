import { createTables, type Dialect } from '../../../shared/readModels/statements.ts';
import type { Tables } from '../../../shared/readModels/table.ts';
import { TABLES } from '../../../shared/readModels/tables.ts';
import { versionOf, type Version } from '../../../shared/readModels/version.ts';
import { blocksAt } from './buckets.ts';
import { BYTES_OF_BLOCKS, ORIGIN_BITS } from './erasure/deletedWords.ts';

/** SQL that adds to `live_words` the length of a turn's words, with this sign. */
const countWords = (row: 'new' | 'old', sign: '' | '-'): string =>
  `INSERT INTO live_words SELECT bits, origin >> bits, ${sign}(octet_length(${row}.words) + ${BYTES_OF_BLOCKS})
    FROM word_index_docsize, (${ORIGIN_BITS.map((bits) => `SELECT ${bits} AS bits`).join(' UNION ALL ')}) WHERE id = ${row}.rowid
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;`;

/**
 * FTS5 over `turn_words`, by its rowid, which wordIndex.ts assigns in the order of sessions. The index
 * stores no words itself. A deleted turn is only marked here (contentless_delete): one mark per turn,
 * where deleting would look up each of its words. wordIndex.ts removes the words later; until then
 * `deleted_words` has their length by the part of the index that they are in, and `live_words` always has
 * that of the other words. Besides its words, each turn has its blocks (buckets.ts).
 */
const WORD_INDEX = `CREATE VIRTUAL TABLE IF NOT EXISTS word_index USING fts5(words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
INSERT INTO word_index(word_index, rank) VALUES ('usermerge', 2), ('deletemerge', 0), ('automerge', 4);
CREATE TABLE IF NOT EXISTS live_words (bits INTEGER NOT NULL, part INTEGER NOT NULL, bytes INTEGER NOT NULL, PRIMARY KEY (bits, part)) STRICT, WITHOUT ROWID;
CREATE TRIGGER IF NOT EXISTS words_come AFTER INSERT ON turn_words BEGIN
  INSERT INTO word_index(rowid, words) VALUES (new.rowid, new.words || ' ' || ${blocksAt('new.rowid')});
  ${countWords('new', '')}
END;
CREATE TABLE IF NOT EXISTS deleted_words (origin INTEGER PRIMARY KEY, bytes INTEGER NOT NULL) STRICT;
CREATE TRIGGER IF NOT EXISTS words_go AFTER DELETE ON turn_words BEGIN
  INSERT INTO deleted_words SELECT origin, octet_length(old.words) + ${BYTES_OF_BLOCKS} FROM word_index_docsize WHERE id = old.rowid
    ON CONFLICT DO UPDATE SET bytes = bytes + excluded.bytes;
  ${countWords('old', '-')}
  DELETE FROM word_index WHERE rowid = old.rowid;
END;`;

const DIALECT: Dialect = {
  types: { text: 'TEXT', integer: 'INTEGER', boolean: 'INTEGER', json: 'TEXT' },
  // Tables with a rowid handle long rows better.
  options: ({ longRows }) => (longRows ? 'STRICT' : 'STRICT, WITHOUT ROWID'),
  wordIndex: WORD_INDEX,
};

const CHECKPOINT =
  'CREATE TABLE IF NOT EXISTS checkpoint (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), position TEXT NOT NULL, log_id TEXT, event_position TEXT, event_id TEXT, event_hash TEXT) STRICT;';

/** The owners whose erasure has hidden rows of that table, which remain to be deleted. */
const PENDING_REMOVALS =
  'CREATE TABLE IF NOT EXISTS pending_removals (table_name TEXT NOT NULL, owner TEXT NOT NULL, PRIMARY KEY (table_name, owner)) STRICT, WITHOUT ROWID;';

/**
 * The version that SQLite keeps these tables under. Each version has its own files; nothing is
 * migrated.
 */
export const sqliteVersion = (tables: Tables, logic?: number): Version =>
  versionOf(
    tables,
    [CHECKPOINT, PENDING_REMOVALS, createTables(tables, DIALECT)].join('\n'),
    logic,
  );

/** The version of this release. */
export const VERSION = sqliteVersion(TABLES);
