import { rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { bucketOf } from '../../../infra/sqlite/readModels/buckets.ts';
import {
  openGenerationReader,
  type GenerationReader,
} from '../../../infra/sqlite/readModels/generationReader.ts';
import { generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import {
  createReaderThread,
  type ReaderThread,
} from '../../../infra/sqlite/readModels/background/readerThread.ts';
import type { SqliteRow } from '../../../infra/sqlite/readModels/statements.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { findSessionsByWords } from '../../../infra/sqlite/readModels/searchSessions.ts';
import type { SessionFilter } from '../../../shared/sessions/sessionFilter.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const START = Date.parse('2026-11-27T00:00:00Z');

/** The id of a session that was made in this millisecond. */
function sessionAt(ms: number, rest = 'a'): string {
  const digits = Array.from({ length: 10 }, (_, n) => ALPHABET[Math.floor(ms / 32 ** n) % 32]);
  return `session_${digits.toReversed().join('')}${rest.padStart(16, '0')}`;
}

/** More turns of a millisecond than a step of a search takes, and a gap longer than its first span. */
const SESSIONS: readonly { id: string; turns: number }[] = [
  { id: sessionAt(START, 'a'), turns: 1 },
  { id: sessionAt(START, 'b'), turns: 2_000 },
  { id: sessionAt(START, 'c'), turns: 3 },
  ...Array.from({ length: 1_200 }, (_, n) => ({ id: sessionAt(START + 100_000 + n), turns: 1 })),
  { id: sessionAt(START + 3_000_000), turns: 700 },
  { id: sessionAt(START + 5_000_001), turns: 1_024 },
  { id: sessionAt(START + 5_000_002), turns: 4_000 },
];
const wordsOf = (turn: number): string[] => ['often', ...(turn % 3 === 0 ? ['third'] : [])];

let folder: string;
let reader: GenerationReader;
let thread: ReaderThread;
/** The most turns that one statement has returned. */
let most = 0;
/** True once the reader of the calling thread has looked for several words in the index. */
let hasMatchedSeveral = false;

/** Counts the turns of rows. */
function counted<Rows extends readonly SqliteRow[]>(rows: Rows): Rows {
  const turns = rows
    .filter((row) => 'turn' in row || 'matches' in row)
    .reduce((sum, row) => sum + String(row['matches'] ?? '').split(',').length, 0);
  most = Math.max(most, turns);
  return rows;
}

beforeAll(async () => {
  folder = await temporaryFolder();
  const store = await openSqliteProjectionStore({ folder });
  await store.close();
  const file = generationFile(folder, store.generation);
  const database = new DatabaseSync(file, { defensive: false });
  const session = database.prepare(
    `INSERT OR IGNORE INTO sessions
       (session_id, agent_id, account_id, status, turns, turns_completed, turns_failed,
        turns_interrupted, labels, created_at, updated_at, revision)
     VALUES (?, 'agent_1', 'acct_1', 'idle', ?, 1, 0, 0, '{}', '', '', 1)`,
  );
  const turn = database.prepare(
    'INSERT INTO turn_words (rowid, session_id, turn, words, revision) VALUES (? << 21 | ?, ?, ?, ?, 1)',
  );
  const slots = new Map<number, number>();
  database.exec('BEGIN');
  for (const { id, turns } of SESSIONS) {
    session.run(id, turns);
    const bucket = bucketOf(id);
    for (let nth = 1; nth <= turns; nth += 1) {
      const slot = slots.get(bucket) ?? (turns === 1_024 ? 2 ** 21 - 1_024 : 0);
      slots.set(bucket, slot + 1);
      turn.run(bucket, slot, id, nth, wordsOf(nth).join(' '));
    }
  }
  database.exec('COMMIT');
  database.close();
  const opened = openGenerationReader(folder, store.generation);
  reader = {
    ...opened,
    all: (...given) => counted(opened.all(...given)),
    *iterate(sql, ...parameters) {
      hasMatchedSeveral ||= / AND /.test(parameters[0] as string);
      yield* counted([...opened.iterate(sql, ...parameters)]);
    },
  };
  const { read, ...others } = createReaderThread(folder, () => reader);
  thread = {
    ...others,
    async read(query, accountId) {
      const timed = await read(query, accountId);
      counted(timed.answer);
      return timed;
    },
  };
});
afterAll(async () => {
  await thread[Symbol.asyncDispose]();
  reader.close();
  await rm(folder, { recursive: true });
});

/** Pages of a search, as session and first turns, and the same of a look at every turn. */
async function search(words: string[], filter: SessionFilter, limit: number) {
  const found: [string, number[]][] = [];
  let after: string | undefined;
  for (;;) {
    const page = { ...filter, words, limit, bytes: 1_000_000, ...(after && { after }) };
    const { rows, more } = await findSessionsByWords(() => reader, thread, 'acct_1', page);
    for (const { session_id, matches } of rows) found.push([session_id, matches!]);
    if (!more) return found;
    after = rows.at(-1)!.session_id;
  }
}
function expected(words: string[], order: 'newest' | 'oldest') {
  const all = SESSIONS.map(({ id, turns }): [string, number[]] => [
    id,
    Array.from({ length: turns }, (_, n) => n + 1)
      .filter((turn) => words.every((word) => wordsOf(turn).includes(word)))
      .slice(0, 20),
  ]).filter(([, matches]) => matches.length > 0);
  const sorted = all.toSorted(([a], [b]) => (a < b ? -1 : 1));
  return order === 'newest' ? sorted.toReversed() : sorted;
}

test.each([
  ['newest', ['often'], 100],
  ['oldest', ['often'], 100],
  ['newest', ['often', 'third'], 1],
  ['oldest', ['often', 'third'], 2],
  ['newest', ['third'], 1_000],
] as const)(
  'a search finds every session, %s first, by %j, in pages of %d',
  async (order, words, limit) => {
    most = 0;
    hasMatchedSeveral = false;
    expect(new Set(SESSIONS.map(({ id }) => id)).size).toBe(SESSIONS.length);
    const found = await search([...words], { order }, limit);
    expect(found).toEqual(expected([...words], order));
    expect(most).toBeLessThanOrEqual(512);
    expect(hasMatchedSeveral).toBe(false);
  },
);

test('the turns of few sessions are scanned a few at a time', async () => {
  most = 0;
  const filter = { agent_id: 'agent_1' };
  expect(await search(['often'], filter, 500)).toEqual(expected(['often'], 'newest'));
  expect(most).toBeLessThanOrEqual(8);
});
