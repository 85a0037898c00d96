import { rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { generationFile } from '../../../infra/sqlite/readModels/generations.ts';

import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { selectInBuckets } from '../../../infra/sqlite/readModels/searchSessions.ts';
import { ALL } from '../../support/stores/projections/agentsOf.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

/** One turn in each of so many buckets; odd ones have a word that the others have not, and the other way round. */
const TURNS = 20_000;
const FIRST = 1_767_225_600_000;

let folder: string;
let database: DatabaseSync;
beforeEach(async () => {
  folder = await temporaryFolder();
  const store = await openSqliteProjectionStore({ folder });
  await store.close();
  database = new DatabaseSync(generationFile(folder, store.generation), { defensive: false });
  const session = database.prepare(
    `INSERT INTO sessions
       (session_id, agent_id, account_id, status, turns, turns_completed, turns_failed,
        turns_interrupted, labels, created_at, updated_at, revision)
     VALUES (?, 'agent_1', 'acct_1', 'idle', 1, 1, 0, 0, '{}', '', '', 1)`,
  );
  const turn = database.prepare(
    'INSERT INTO turn_words (rowid, session_id, turn, words, revision) VALUES ((? + CAST(? AS INTEGER)) << 21, ?, 1, ?, 1)',
  );
  database.exec('BEGIN');
  for (let nth = 0; nth < TURNS; nth += 1) {
    session.run(`session_${nth}`);
    turn.run(FIRST, nth, `session_${nth}`, `often ${nth % 2 ? 'left' : 'right'}`);
  }
  database.exec("COMMIT; INSERT INTO word_index(word_index) VALUES ('optimize')");
});
afterEach(async () => {
  database.close();
  await rm(folder, { recursive: true });
});

const found = (words: string[], first: number, last: number): number => {
  const buckets = [FIRST + first, FIRST + last] as const;
  const [sql, ...parameters] = selectInBuckets('acct_1', { ...ALL, words }, buckets);
  const rows = database.prepare(sql).all(...parameters);
  return rows.filter(({ session_id }) => session_id !== null).length;
};

/** Takes the pages with the turns of a word out of the index, but for the first two and the last two. */
function tear(word: string): number {
  // The index has only the first letter: it is enough to tell these words apart.
  const [from, next] = database
    .prepare('SELECT pgno >> 1 AS page FROM word_index_idx WHERE term >= ? ORDER BY page LIMIT 2')
    .all(Buffer.from(`0${word[0]}`)) as { page: number }[];
  const { changes } = database
    .prepare('DELETE FROM word_index_data WHERE id & 0x7fffffff BETWEEN ? AND ?')
    .run(from!.page + 2, next!.page - 3);
  return Number(changes);
}

const PIECE = 512;

test.each([
  ['one word', ['left'], PIECE, 5],
  ['words that turns have', ['left', 'often'], PIECE, 5],
  ['words that no turn has together', ['left', 'right'], 0, 0],
])('a piece of a search reads nothing of other turns, of %s', (_, words, inAll, inPiece) => {
  expect(found(words, 0, TURNS - 1)).toBe(inAll);
  for (const word of ['left', 'often']) expect(tear(word)).toBeGreaterThan(4);
  expect(found(words, TURNS - 10, TURNS - 1)).toBe(inPiece);
  expect(() => found(words, 0, TURNS / 2)).toThrow(/malformed|corruption/);
});
