import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../../infra/sqlite/readModels/readModels.ts';
import { createProgressChannel } from '../../../shared/projections/progress.ts';
import { filesWith } from '../../support/stores/erasure/holding.ts';
import {
  sessionErased,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../support/builders/events.ts';
import { reached, recordHistory } from '../../support/builders/history.ts';
import { ALL } from '../../support/stores/projections/agentsOf.ts';
import type { RemovalProgress } from '../../../shared/search/turnIndex.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const [TURNS, WORDS] = [40, 400];

let folder: string;
let store: Awaited<ReturnType<typeof openSqliteProjectionStore>>;
let history: ReturnType<typeof recordHistory>;
beforeEach(async () => {
  folder = await temporaryFolder();
  store = await openSqliteProjectionStore({ folder });
  history = recordHistory();
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

const anyTokens = (count: number): string[] =>
  Array.from({ length: count }, () => randomBytes(12).toString('hex'));
/** How an index has it at the least, which leaves out how the word before begins, too. */
const traceOf = (word: string): Buffer => Buffer.from(word.slice(12));

/** A session whose turns have words of their own, and one that all sessions share. */
async function talk(session: string, turns = TURNS): Promise<string[]> {
  const recorded = { stream: `session-${session}` };
  const events = [
    history.record(recorded, sessionStarted()),
    ...Array.from({ length: turns }, (_, n) => [
      history.record(recorded, turnStarted(n + 1)),
      history.record(recorded, turnCompleted(n + 1)),
    ]).flat(),
  ];
  await store.apply(events, reached(history.lastPosition()));
  const own: string[] = [];
  for (;;) {
    const waiting = await store.unindexed();
    if (waiting.length === 0) return own;
    const found = waiting.map((turn) => ({ ...turn, tokens: ['shared', ...anyTokens(WORDS)] }));
    own.push(...found.flatMap((turn) => turn.tokens.slice(1)));
    await store.index(found);
  }
}
const erase = async (session: string): Promise<void> => {
  const erased = history.record({ stream: `session-${session}` }, sessionErased());
  await store.apply([erased], reached(erased.position));
};
const some = (words: readonly string[]): Buffer[] =>
  [0, 1, Math.floor(words.length / 2), words.length - 1].map((at) => traceOf(words[at]!));

/** Takes out what is left, and says in how many pieces. */
async function untilAll(): Promise<number> {
  for (let pieces = 1; ; pieces += 1) {
    const forgotten = await store.forget!(true);
    if (forgotten === 'all') return pieces;
    expect(['begun', 'some']).toContain(forgotten);
  }
}

async function search(word: string) {
  const progress = createProgressChannel();
  const readModels = openSqliteReadModels({ folder, progress });
  const position = history.lastPosition();
  const { generation } = store;
  progress.publish({ position, caughtUp: true, keepsKnownRows: false, percent: 100, generation });
  const { rows } = await readModels.listSessions('acct_1', { ...ALL, words: [word] });
  const holds = await readModels.holdsErased();
  await readModels.close();
  return { found: rows.map(({ session_id }) => session_id).toSorted(), holds };
}

test('words of erased turns are found no more at once, and are taken out of the files piece by piece', async () => {
  const [erased, kept] = [await talk('session_1'), await talk('session_2')];
  expect(await store.forget!(true)).toBe('nothing');
  await erase('session_1');
  expect(await search('shared')).toEqual({ found: ['session_2'], holds: true });
  expect(await search(erased[0]!)).toEqual({ found: [], holds: true });
  expect(filesWith(folder, some(erased))).not.toEqual([]);

  expect(['begun', 'some']).toContain(await store.forget!(true));
  // What comes meanwhile keeps it from nothing.
  const later = await talk('session_3', 1);
  expect(await untilAll()).toBeGreaterThan(3);
  expect(await store.forget!(true)).toBe('nothing');
  expect(await search('shared')).toEqual({ found: ['session_2', 'session_3'], holds: false });
  expect(await search(kept.at(-1)!)).toMatchObject({ found: ['session_2'] });
  expect(await search(later[0]!)).toMatchObject({ found: ['session_3'] });
  expect(filesWith(folder, some(kept))).not.toEqual([]);
  expect(filesWith(folder, erased.filter((_, n) => n % 100 === 0).map(traceOf))).toEqual([]);
});

test('what a process left that died is gone on with, and so is what is erased meanwhile', async () => {
  const [first, second] = [await talk('session_1'), await talk('session_2')];
  await talk('session_3');
  await erase('session_1');
  expect(['begun', 'some']).toContain(await store.forget!(true));
  await store.close();
  store = await openSqliteProjectionStore({ folder });
  expect(await search('shared')).toEqual({ found: ['session_2', 'session_3'], holds: true });
  expect(['begun', 'some']).toContain(await store.forget!(true));
  await erase('session_2');
  await untilAll();
  expect(filesWith(folder, [...some(first), ...some(second)])).toEqual([]);
  expect(await search('shared')).toEqual({ found: ['session_3'], holds: false });
});

test('where most turns are erased, words leave the index as gradually as where few are', async () => {
  const sessions = Array.from({ length: 14 }, (_, n) => `session_${n}`);
  const words: string[] = [];
  for (const session of sessions) words.push(...(await talk(session)));
  const reader = new DatabaseSync(generationFile(folder, 1), { readOnly: true });
  const count = reader.prepare('SELECT count(*) AS pages FROM word_index_data');
  const countPages = (): number => count.get()!['pages'] as number;
  const pages = countPages();
  expect(pages).toBeGreaterThan(1_000);
  for (const session of sessions) await erase(session);
  const steps: number[] = [];
  let forgotten: RemovalProgress = 'nothing';
  let pauses = -1;
  for (let before = countPages(); ; before = countPages()) {
    expect(await search('shared')).toEqual({ found: [], holds: true });
    if (forgotten === 'nothing') pauses += 1;
    forgotten = await store.forget!(forgotten === 'nothing');
    steps.push(before - countPages());
    if (forgotten === 'all') break;
    if (steps.length % 20 > 0) continue;
    await store.close();
    store = await openSqliteProjectionStore({ folder });
  }
  reader.close();
  expect(await search('shared')).toEqual({ found: [], holds: false });
  expect(Math.max(...steps)).toBeLessThan(pages / 3);
  // Rows that wait for a round begin it. The last round has none.
  expect(pauses).toBeLessThanOrEqual(1);
  await store.close();
  expect(filesWith(folder, words.filter((_, n) => n % 100 === 0).map(traceOf))).toEqual([]);
});

test('a turn that was to be indexed when it was erased leaves nothing', async () => {
  await talk('session_1', 1);
  const recorded = { stream: 'session-session_2' };
  const events = [sessionStarted(), turnStarted(1), turnCompleted(1)];
  await store.apply(
    events.map((event) => history.record(recorded, event)),
    reached(history.lastPosition()),
  );
  const waiting = await store.unindexed();
  await erase('session_2');
  const [word] = anyTokens(1);
  await store.index(waiting.map((turn) => ({ ...turn, tokens: [word!] })));
  expect(await store.forget!(true)).toBe('nothing');
  expect(filesWith(folder, [traceOf(word!)])).toEqual([]);
});
