import { DatabaseSync } from 'node:sqlite';
import { storeUnavailableError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint, Position } from '../../../shared/ports/eventStore.ts';
import type { DamagedRow } from '../../../shared/readModels/integrity/damagedRows.ts';
import {
  selectRows,
  VERIFIED_TABLES,
  type AnyRow,
  type KeyValues,
  type LiveRows,
  type VerifiedTable,
} from '../../../shared/readModels/integrity/rowReader.ts';
import { parseState } from '../../../shared/readModels/integrity/verificationState.ts';
import type { RowCopy } from '../../../shared/readModels/integrity/verifyRows.ts';
import type { Rows } from '../../../shared/readModels/tables.ts';
import type { EndedTurn } from '../../../shared/search/turnIndex.ts';
import { isSqliteBusy } from '../eventStore/errors.ts';
import { BLOCKS_OF_TURN, blocksAt, bucketAt, bucketOf } from './buckets.ts';
import { isDamaged, readModelsNotOpened, withReadModelErrors } from './failures.ts';
import { openGenerationFile } from './generationFile.ts';
import { isShown } from './erasure/pendingRemovals.ts';
import { currentGeneration, generationFile, removeDatabase, verifyingFile } from './generations.ts';
import { projectionStoreOn } from './projectionStore.ts';
import { VERSION } from './schema.ts';
import { rowDecoder } from './statements.ts';

const BUSY_TIMEOUT_MS = 1_000;

/** The checkpoint of a generation. */
export const SELECT_CHECKPOINT =
  'SELECT log_id, event_position AS position, event_id, event_hash FROM checkpoint WHERE event_position IS NOT NULL';

/** Reads rows of an open file in the order of their keys. Throws SQLite's errors. */
function readRows(
  database: DatabaseSync,
  table: VerifiedTable,
  after: KeyValues | undefined,
  limit: number,
): AnyRow[] {
  const description = VERIFIED_TABLES[table];
  const shown =
    table === 'parked_streams' ? table : `(SELECT * FROM ${table} WHERE ${isShown(table)})`;
  const sql = selectRows(shown, description, { after, limit }, () => '?');
  return database
    .prepare(sql)
    .all(...(after ?? []))
    .map(rowDecoder(description)) as AnyRow[];
}

const VOCABULARY =
  'CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, word_index, row)';
const INDEXED_WORD =
  'SELECT rowid FROM word_index WHERE word_index MATCH ? AND rowid BETWEEN ? AND ?';
/** The words and blocks of all turns: those that the index has, and those that it should have. */
const TOTALS = `SELECT (SELECT coalesce(sum(doc), 0) FROM temp.vocabulary) AS indexed,
  (SELECT coalesce(sum(length(words) - length(replace(words, ' ', '')) + (words <> '') + ${BLOCKS_OF_TURN}), 0) FROM turn_words) AS recorded`;

/** The index as a whole does not fit, or one turn in it. */
const misfit = (column: string, key = '*'): DamagedRow => ({ table: 'word_index', key, column });

/**
 * Finds the turns that the index of words would not find by their words or pages, or by the words of other
 * turns of the page, and after the last page whether the index has words that no turn has. Inside a
 * transaction, in which the rows of the page were read.
 */
function indexMisfits(
  database: DatabaseSync,
  rows: readonly AnyRow[],
  isLast: boolean,
): DamagedRow[] {
  const place = database.prepare(
    `SELECT rowid, ${bucketAt('rowid')} AS bucket, ${blocksAt('rowid')} AS blocks FROM turn_words WHERE session_id = ? AND turn = ?`,
  );
  place.setReadBigInts(true);
  const find = database.prepare(INDEXED_WORD);
  find.setReadBigInts(true);
  const misfits = new Map<string, DamagedRow>();
  const keys = new Map<bigint, string>();
  const turnsOf = new Map<string, Set<bigint>>();
  for (const row of rows as Rows['turn_words'][]) {
    const key = `${row.session_id}/${row.turn}`;
    const { rowid, bucket, blocks } = place.get(row.session_id, row.turn) as {
      rowid: bigint;
      bucket: bigint;
      blocks: string;
    };
    if (Number(bucket) !== bucketOf(row.session_id)) {
      misfits.set(key, misfit('rowid', key));
      continue;
    }
    keys.set(rowid, key);
    const words = row.words === '' ? [] : row.words.split(' ');
    for (const word of [...words, ...blocks.split(' ')])
      turnsOf.set(word, (turnsOf.get(word) ?? new Set()).add(rowid));
  }
  const rowids = [...keys.keys()].toSorted((a, b) => (a < b ? -1 : 1));
  const [first, last] = [rowids[0], rowids.at(-1)];
  for (const [word, expected] of turnsOf) {
    const indexedRowids = find
      .all(`"${word.replaceAll('"', '""')}"`, first!, last!)
      .map(({ rowid }) => rowid as bigint);
    for (const rowid of expected.symmetricDifference(new Set(indexedRowids))) {
      const key = keys.get(rowid);
      if (key !== undefined) misfits.set(key, misfit('words', key));
    }
  }
  const { indexed, recorded } = isLast
    ? database.prepare(TOTALS).get()!
    : { indexed: 0, recorded: 0 };
  const isSurplus = Number(indexed) > Number(recorded);
  return [...misfits.values(), ...(isSurplus ? [misfit('unrecorded')] : [])];
}

/** Like `indexMisfits`; names the whole index if SQLite finds it damaged. */
function wordMisfits(...given: Parameters<typeof indexMisfits>): DamagedRow[] {
  try {
    return indexMisfits(...given);
  } catch (error) {
    if (isDamaged(error)) return [misfit('damaged')];
    throw error;
  }
}

/** The rows of the current generation in `<folder>/read-models`, whichever it is at each read. */
export function openSqliteLiveRows({ folder }: { folder: string }): LiveRows {
  let opened: { generation: number; database: DatabaseSync } | undefined;

  const closeFile = (): void => {
    opened?.database.close();
    opened = undefined;
  };

  function current(): DatabaseSync {
    const generation = currentGeneration(folder);
    if (generation === undefined)
      throw storeUnavailableError('There are no read models in the data folder yet.');
    if (opened?.generation === generation) return opened.database;
    closeFile();
    const file = generationFile(folder, generation);
    const database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
    try {
      database.exec(VOCABULARY);
    } catch (error) {
      database.close();
      throw readModelsNotOpened(file, error);
    }
    opened = { generation, database };
    return database;
  }

  return {
    read: (table, after, limit) =>
      withReadModelErrors(() => {
        const database = current();
        database.exec('BEGIN');
        try {
          const checkpoint = database.prepare(SELECT_CHECKPOINT).get() as Checkpoint | undefined;
          const rows = readRows(database, table, after, limit);
          if (table !== 'turn_words') return { checkpoint, rows };
          const indexed = database.prepare('SELECT position FROM indexed').get()?.['position'];
          const misfits = wordMisfits(database, rows, rows.length < limit);
          return { checkpoint, rows, indexed: indexed as Position | undefined, misfits };
        } finally {
          database.exec('COMMIT');
        }
      }),
    close: async () => closeFile(),
  };
}

const ENDED_TURNS = `SELECT session_id, account_id, turn, input, output, end_position, turns.revision
  FROM turns JOIN sessions USING (session_id)
  WHERE (session_id, turn) > (?, ?) AND end_position IS NOT NULL ORDER BY session_id, turn LIMIT ?`;

const STATE =
  'CREATE TABLE IF NOT EXISTS verification (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), state TEXT NOT NULL) STRICT';

/**
 * Opens the copy of the read models that a verification fills: a new one, or the one of an interrupted
 * verification. Throws `rebuild_running` while another verification runs.
 */
export async function openSqliteRowCopy({ folder }: { folder: string }): Promise<RowCopy> {
  const file = verifyingFile(folder);
  const options = { folder, file, exclusive: true, version: VERSION };
  try {
    const database = openGenerationFile(options);
    const store = projectionStoreOn(database, options);
    database.exec(STATE);
    const endedTurns = database.prepare(ENDED_TURNS);
    const select = database.prepare('SELECT state FROM verification');
    const save = database.prepare('INSERT OR REPLACE INTO verification VALUES (1, ?)');
    return {
      checkpoint: store.checkpoint,
      apply: store.apply,
      read: (table, after, limit) =>
        withReadModelErrors(() => readRows(database, table, after, limit)),
      endedTurns: (after, limit) =>
        withReadModelErrors(
          () => endedTurns.all(...(after ?? ['', 0]), limit) as unknown as EndedTurn[],
        ),
      state: () =>
        withReadModelErrors(() => {
          const row = select.get();
          return row && parseState(row['state'] as string);
        }),
      saveState: (state) => withReadModelErrors(() => void save.run(JSON.stringify(state))),
      startOver: () =>
        withReadModelErrors(() => {
          database.exec('DELETE FROM verification');
          return store.startOver();
        }),
      close: store.close,
      async discard() {
        await store.close();
        removeDatabase(file);
      },
    };
  } catch (error) {
    if (isSqliteBusy(error))
      throw new TurnlogError(
        'rebuild_running',
        `Another verification of the read models in ${folder} is running.`,
        { cause: error },
      );
    throw readModelsNotOpened(file, error);
  }
}
