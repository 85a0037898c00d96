import type { SQLOutputValue } from 'node:sqlite';
import {
  columnNames,
  createTables,
  upsert,
  type Dialect,
} from '../../../shared/readModels/statements.ts';
import type { Kind, Table, Tables } from '../../../shared/readModels/table.ts';
import { blocksAt } from './buckets.ts';

/**
 * FTS5 over `turn_words`, by its rowid, which wordIndex.ts gives in the order of sessions. It keeps no
 * words itself. What is deleted there is marked here as no longer found (contentless_delete): one mark
 * a turn, where each of its words would have to be looked up. wordIndex.ts takes them out later on.
 * Beside its words a turn has its blocks (buckets.ts).
 */
const WORD_INDEX = `CREATE VIRTUAL TABLE IF NOT EXISTS word_index USING fts5(words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii');
INSERT INTO word_index(word_index, rank) VALUES ('usermerge', 2), ('deletemerge', 0), ('automerge', 4);
CREATE TRIGGER IF NOT EXISTS words_come AFTER INSERT ON turn_words BEGIN
  INSERT INTO word_index(rowid, words) VALUES (new.rowid, new.words || ' ' || ${blocksAt('new.rowid')});
END;
CREATE TRIGGER IF NOT EXISTS words_go AFTER DELETE ON turn_words BEGIN
  DELETE FROM word_index WHERE rowid = old.rowid;
END;`;

const DIALECT: Dialect = {
  types: { text: 'TEXT', integer: 'INTEGER', boolean: 'INTEGER', json: 'TEXT' },
  // Tables with a rowid carry long rows better.
  options: ({ longRows }) => (longRows ? 'STRICT' : 'STRICT, WITHOUT ROWID'),
  wordIndex: WORD_INDEX,
};

const CHECKPOINT =
  'CREATE TABLE IF NOT EXISTS checkpoint (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), position TEXT NOT NULL, log_id TEXT, event_position TEXT, event_id TEXT, event_hash TEXT) STRICT;';

/** Makes what a generation's file holds. */
export const ddlOf = (tables: Tables): string => `${CHECKPOINT}\n${createTables(tables, DIALECT)}`;

type Parameter = string | number | null;
type Found = Record<string, SQLOutputValue>;

function encode(kind: Kind, value: unknown): Parameter {
  if (kind === 'text' || kind === 'integer' || value === null) return value as Parameter;
  return kind === 'json' ? JSON.stringify(value) : Number(value);
}

/** A row as the parameters of its upsert. */
export function rowEncoder(table: Table): (row: object) => Parameter[] {
  const kinds = Object.entries(table.columns).map(([name, { kind }]) => [name, kind] as const);
  return (row) => kinds.map(([name, kind]) => encode(kind, row[name as keyof typeof row]));
}

/** Makes rows of what SQLite found, in place, on the object that it made. */
export function rowDecoder(table: Table): (found: Found) => unknown {
  const columns = Object.entries(table.columns);
  const namesOf = (wanted: Kind): string[] =>
    columns.filter(([, { kind }]) => kind === wanted).map(([name]) => name);
  const [booleans, jsons] = [namesOf('boolean'), namesOf('json')];
  return (found) => {
    const row: Record<string, unknown> = found;
    for (const name of booleans) if (row[name] !== null) row[name] = row[name] === 1;
    for (const name of jsons) if (row[name] !== null) row[name] = JSON.parse(row[name] as string);
    return row;
  };
}

/** The statements that load and save one row of the table. */
export const rowStatements = (name: string, table: Table): { select: string; save: string } => ({
  select: `SELECT * FROM ${name} WHERE ${table.key.map((column) => `${column} = ?`).join(' AND ')}`,
  save: upsert(
    name,
    table,
    `VALUES (${columnNames(table)
      .map(() => '?')
      .join(', ')})`,
  ),
});
