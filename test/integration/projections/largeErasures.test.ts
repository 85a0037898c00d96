import { mkdtemp, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { openGenerationFile } from '../../../infra/sqlite/readModels/generationFile.ts';
import { buildingFile, generationFile } from '../../../infra/sqlite/readModels/generations.ts';
import { projectionStoreOn } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../../infra/sqlite/readModels/readModels.ts';
import { VERSION } from '../../../infra/sqlite/readModels/schema.ts';
import { rowDecoder } from '../../../infra/sqlite/readModels/statements.ts';
import { openSqliteLiveRows } from '../../../infra/sqlite/readModels/verification.ts';
import type { DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import { MIB } from '../../../shared/lib/units.ts';
import type { StoredEvent } from '../../../shared/ports/eventStore.ts';
import { fold, rowMaps } from '../../../shared/projections/fold.ts';
import { planBatch } from '../../../shared/projections/plan.ts';
import { createProgressChannel } from '../../../shared/projections/progress.ts';
import {
  keyOf,
  type AnyRow,
  type KeyValues,
} from '../../../shared/readModels/integrity/rowReader.ts';
import { TABLES, tableNames, type TableName } from '../../../shared/readModels/tables.ts';
import {
  accountErased,
  accountOpened,
  replayErased,
  replaySessionStarted,
  replayStarted,
  replayTurnsCompared,
  sessionDescribed,
  sessionErased,
  sessionStarted,
  turnComparison,
  turnCompleted,
  turnStarted,
} from '../../support/builders/events.ts';
import { reached, recordHistory } from '../../support/builders/history.ts';
import { size } from '../../support/jest/size.ts';
import { filesHolding, newMarker } from '../../support/stores/erasure/holding.ts';
import { ALL } from '../../support/stores/projections/agentsOf.ts';

let folder: string;
let store: ReturnType<typeof openStore>;
let history: ReturnType<typeof recordHistory>;
let events: StoredEvent[];
async function begin(): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-erasures-'));
  store = openStore();
  history = recordHistory();
  events = [];
}
async function end(): Promise<void> {
  await store.close();
  await rm(folder, { recursive: true, force: true });
}
beforeEach(begin);
afterEach(end);

/** What a transaction deleted of the rows that are deleted in steps, and of the texts of turns. */
interface Deleted {
  rows: number;
  bytes: number;
}

/** The store of the live generation, or of one that is built, with what its transactions deleted. */
function openStore(exclusive = false) {
  const file = exclusive ? buildingFile(folder, 2) : generationFile(folder, 1);
  const options = { folder, file, exclusive, version: VERSION };
  const database = openGenerationFile(options);
  const count = database.prepare(`SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes FROM (
    SELECT octet_length(input) + coalesce(octet_length(output), 0) AS bytes FROM turns
    UNION ALL SELECT octet_length(words) FROM turn_words
    UNION ALL SELECT 0 FROM replay_sessions UNION ALL SELECT 0 FROM replay_turns UNION ALL SELECT 0 FROM usage)`);
  const deleted: Deleted[] = [];
  let before = count.get() as unknown as Deleted;
  const watched: DatabaseSync = new Proxy(database, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      const call = value.bind(target) as (...args: unknown[]) => unknown;
      if (name !== 'exec') return call;
      return (sql: string) => {
        if (sql === 'COMMIT') {
          const now = count.get() as unknown as Deleted;
          deleted.push({ rows: before.rows - now.rows, bytes: before.bytes - now.bytes });
          before = now;
        }
        return call(sql);
      };
    },
  });
  const rowsIn = (table: TableName): AnyRow[] =>
    database.prepare(`SELECT * FROM ${table}`).all().map(rowDecoder(TABLES[table])) as AnyRow[];
  return { ...projectionStoreOn(watched, options), generation: 1, deleted, rowsIn };
}

const record = (session: string, ...given: DomainEvent[]): StoredEvent[] =>
  given.map((event) => history.record({ stream: `session-${session}` }, event));

/** Events of a replay of this many sessions, with as many compared turns of the first. */
function replayOf(id: string, count: number): StoredEvent[] {
  const numbers = Array.from({ length: count }, (_, n) => n + 1);
  const sessions = numbers.map((n) => ({ session_id: `session_${n}`, revision: 4, turns: 2 }));
  return [
    replayStarted({ sessions }),
    replayTurnsCompared(numbers.map((n) => turnComparison(n))),
  ].map((event) => history.record({ stream: `replay-${id}` }, event));
}

/** Events of turns of an account that make one row of its usage each. */
const usedBy = (account: string, from: number, count: number): StoredEvent[] => [
  ...(from === 1 ? [sessionStarted()].map(inSession(account, from)) : []),
  ...Array.from({ length: count }, (_, n) =>
    [turnStarted(from + n), turnCompleted(from + n)].map(inSession(account, from + n)),
  ).flat(),
];
const inSession = (account: string, key: number) => (event: DomainEvent) =>
  history.record({ stream: `session-session_of_${account}`, account, key: `key_${key}` }, event);

async function apply(...given: StoredEvent[]): Promise<void> {
  events.push(...given);
  await store.apply(given, reached(history.lastPosition()));
}

/** Events of ended turns, each with an input of this length. */
const turns = (from: number, count: number, input: string): DomainEvent[] =>
  Array.from({ length: count }, (_, n) => [
    turnStarted(from + n, { input }),
    turnCompleted(from + n),
  ]).flat();

const wordOf = (session: string): string => session.replace('_', '');

/** Indexes the words of all ended turns. */
async function indexAll(): Promise<void> {
  for (;;) {
    const waiting = await store.unindexed();
    if (waiting.length === 0) return;
    const tokensOf = ({ session_id }: { session_id: string }) => ['shared', wordOf(session_id)];
    await store.index(
      waiting.map((turn) => ({ ...turn, tokens: turn.is_indexed ? [] : tokensOf(turn) })),
    );
  }
}

async function forgetAll(): Promise<void> {
  while ((await store.forget!(true)) !== 'nothing');
}

const sorted = (rows: Iterable<unknown>): unknown[] =>
  [...rows]
    .map((row) =>
      Object.fromEntries(Object.entries(row as object).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    )
    .toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));

/** Tables that the projections write. */
const PROJECTED = tableNames.filter((table) => table !== 'turn_words');

/** The rows that the events make in one transaction, by table. */
function rowsOfEvents() {
  const rows = rowMaps();
  fold(planBatch(events), rows, new Set());
  return Object.fromEntries(PROJECTED.map((table) => [table, sorted(rows[table].values())]));
}

/** The rows as a verification reads them, page by page. */
async function shownRows(table: TableName): Promise<AnyRow[]> {
  const live = openSqliteLiveRows({ folder });
  const all: AnyRow[] = [];
  try {
    for (let after: KeyValues | undefined; ; after = keyOf(table, all.at(-1)!)) {
      const { rows, misfits = [] } = await live.read(table, after, 50);
      expect(misfits).toEqual([]);
      all.push(...rows);
      if (rows.length < 50) return all;
    }
  } finally {
    await live.close();
  }
}
const shownContent = async () =>
  Object.fromEntries(
    await Promise.all(
      PROJECTED.map(async (table) => [table, sorted(await shownRows(table))] as const),
    ),
  );

/** What queries return of a session. */
async function queried(session: string) {
  const progress = createProgressChannel();
  const readModels = openSqliteReadModels({ folder, progress });
  const position = history.lastPosition();
  progress.publish({
    position,
    caughtUp: true,
    keepsKnownRows: false,
    percent: 100,
    generation: store.generation,
  });
  const listed = async (words?: string[]) => {
    const { rows } = await readModels.listSessions('acct_1', { ...ALL, ...(words && { words }) });
    return rows.map(({ session_id }) => session_id);
  };
  const transcript = await readModels.findTranscript('acct_1', session, { ...ALL, after: 0 });
  const found = {
    status: transcript?.session.status,
    turns: transcript?.turns.rows.length,
    open: (await readModels.listOpenTurns()).map(({ session_id }) => session_id),
    listed: await listed(),
    shared: await listed(['shared']),
    own: await listed([wordOf(session)]),
    rows: await Promise.all(
      (['turns', 'turn_words'] as const).map((table) => readModels.findRow(table, [session, 300])),
    ),
    holds: await readModels.holdsErased(),
  };
  await readModels.close();
  return found;
}

const AT_MOST = { rows: 128, bytes: MIB };
const LONG = MIB / 2;

test('a command that deletes the last rows cleans the write-ahead file, although a server keeps it open', async () => {
  const marker = newMarker();
  const erased = record('session_1', sessionStarted(), ...turns(1, 300, marker.repeat(1_000)));
  await apply(...erased);
  const server = openStore();
  const reader = new DatabaseSync(generationFile(folder, 1), { readOnly: true });
  try {
    await apply(...record('session_1', sessionErased()));
    reader.exec('BEGIN; SELECT * FROM sessions');
    await forgetAll();
    expect(filesHolding(folder, marker)).not.toEqual([]);
    reader.exec('COMMIT');
    await store.close();
    expect(filesHolding(folder, marker)).toEqual([]);
  } finally {
    reader.close();
    await server.close();
  }
});

test('a large session is hidden by its erasure, deleted in short transactions also after a restart, and then gone', async () => {
  const marker = newMarker();
  await apply(...record('session_1', sessionStarted(), ...turns(1, 300, marker)));
  await apply(...record('session_1', ...turns(301, 6, `${marker}${'x'.repeat(LONG)}`)));
  await apply(...record('session_2', sessionStarted(), ...turns(1, 3, 'kept')));
  await indexAll();
  // Not indexed yet when they are erased.
  await apply(...record('session_1', ...turns(307, 2, marker), turnStarted(309)));
  expect(await queried('session_1')).toMatchObject({ turns: 309, open: ['session_1'] });

  store.deleted.length = 0;
  await apply(...record('session_1', sessionDescribed({ of: marker }), sessionErased()));
  const hidden = {
    status: 'erased',
    turns: 0,
    open: [],
    listed: ['session_2'],
    shared: ['session_2'],
    own: [],
    rows: [undefined, undefined],
    holds: true,
  };
  expect(await queried('session_1')).toEqual(hidden);
  expect(await shownContent()).toEqual(rowsOfEvents());
  expect(await shownRows('turn_words')).toHaveLength(3);
  expect(store.rowsIn('turns').length).toBeGreaterThan(100);

  // Skipped by the index, which comes to them only now.
  const [next] = await store.unindexed();
  expect(next).toMatchObject({ session_id: 'session_1', turn: 307, is_indexed: true });
  await store.index([{ ...next!, tokens: ['late'] }]);
  await indexAll();
  expect(store.rowsIn('turn_words').map(({ turn }) => turn)).not.toContain(307);

  expect(await store.forget!(false)).toBe('some');
  const { deleted } = store;
  await store.close();
  store = openStore();
  expect(await queried('session_1')).toEqual(hidden);
  await apply(...record('session_2', ...turns(4, 1, 'kept, too')));
  while (store.rowsIn('turns').length + store.rowsIn('turn_words').length > 7)
    expect(await store.forget!(false)).toBe('some');
  expect(store.deleted.length).toBeGreaterThan(3);
  deleted.push(...store.deleted);
  for (const { rows, bytes } of deleted) {
    expect(rows).toBeLessThanOrEqual(AT_MOST.rows);
    expect(bytes).toBeLessThan(AT_MOST.bytes + LONG + 1_000);
  }
  expect(filesHolding(folder, marker)).toEqual([]);
  expect(store.rowsIn('turns')).toHaveLength(4);
  expect(store.rowsIn('turn_words')).toHaveLength(3);
  expect(await shownContent()).toEqual(rowsOfEvents());

  // Their words are left in the index.
  await forgetAll();
  expect(await queried('session_1')).toEqual({ ...hidden, holds: false });
});

test('a small session is deleted with its erasure, also beside a large one, and a rebuild deletes any', async () => {
  for (const [session, count] of [
    ['session_1', 40],
    ['session_2', 200],
    ['session_3', 40],
    ['session_4', 40],
  ] as const)
    await apply(...record(session, sessionStarted(), ...turns(1, count, 'short')));
  await indexAll();
  const sessionsIn = (table: TableName) =>
    [...new Set(store.rowsIn(table).map(({ session_id }) => session_id as string))].toSorted();
  await apply(...record('session_1', sessionErased()));
  expect(sessionsIn('turns')).toEqual(['session_2', 'session_3', 'session_4']);
  await apply(...record('session_2', sessionErased()), ...record('session_3', sessionErased()));
  await apply(...record('session_4', sessionErased()));
  expect(sessionsIn('turns')).toContain('session_2');
  expect(sessionsIn('turns')).not.toContain('session_4');
  expect(await shownRows('turns')).toEqual([]);

  const rebuilt = openStore(true);
  // A batch that has all events of a session inserts no turns.
  for (const event of events) await rebuilt.apply([event], reached(event.position));
  expect(rebuilt.rowsIn('turns')).toEqual([]);
  await rebuilt.close();
});

test('a batch deletes no more rows for many erasures than for one', async () => {
  const names = Array.from({ length: 12 }, (_, n) => `session_${n}`);
  for (const name of names)
    await apply(...record(name, sessionStarted(), ...turns(1, 30, 'x'.repeat(20_000))));
  store.deleted.length = 0;
  await apply(...names.flatMap((name) => record(name, sessionErased())));
  expect(store.deleted.length).toBeGreaterThan(1);
  const sum = (of: keyof Deleted): number =>
    store.deleted.reduce((total, deleted) => total + deleted[of], 0);
  expect(sum('rows')).toBeLessThanOrEqual(AT_MOST.rows);
  expect(sum('bytes')).toBeLessThan(AT_MOST.bytes + 21_000);
  expect(await shownContent()).toEqual(rowsOfEvents());
});

test('events that follow an erasure, which no command makes, find no rows, and theirs remain', async () => {
  await apply(...record('session_1', sessionStarted(), ...turns(1, 200, 'short')));
  await indexAll();
  await apply(...record('session_1', sessionErased()));
  // The row of this turn is the last that is deleted.
  await apply(...record('session_1', ...turns(200, 1, 'again')));
  expect(await shownContent()).toEqual(rowsOfEvents());
  await forgetAll();
  expect(store.rowsIn('turns')).toMatchObject([{ turn: 200, input: 'again' }]);
  expect(await shownContent()).toEqual(rowsOfEvents());
});

test('a large replay and the usage of an account are deleted in short transactions', async () => {
  const opened = history.record({ stream: 'account-acct_2', account: 'acct_2' }, accountOpened());
  await apply(opened, ...usedBy('acct_2', 1, 300));
  await apply(...replayOf('replay_1', 300), ...replayOf('replay_2', 30));
  store.deleted.length = 0;
  await apply(
    history.record({ stream: 'replay-replay_1' }, replayErased()),
    history.record({ stream: 'account-acct_2', account: 'acct_2' }, accountErased()),
  );
  expect(await shownContent()).toEqual(rowsOfEvents());
  expect(await store.forget!(false)).toBe('some');
  const { deleted } = store;
  await store.close();
  store = openStore();
  expect(await shownContent()).toEqual(rowsOfEvents());
  await forgetAll();
  deleted.push(...store.deleted);
  expect(deleted.length).toBeGreaterThan(6);
  for (const { rows } of deleted) expect(rows).toBeLessThanOrEqual(AT_MOST.rows);
  const counts = ['replay_sessions', 'replay_turns', 'usage'] as const;
  expect(counts.map((table) => store.rowsIn(table).length)).toEqual([30, 30, 0]);
});

const SESSIONS = ['session_1', 'session_2', 'session_3'];
const step = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(70, 140).map((count) => ({ count })) },
  { weight: 2, arbitrary: fc.constant({ count: 2, length: LONG }) },
  { weight: 3, arbitrary: fc.constant('erase' as const) },
  { weight: 3, arbitrary: fc.constantFrom('index' as const, 'forget' as const) },
  { weight: 1, arbitrary: fc.constant('reopen' as const) },
  { weight: 3, arbitrary: fc.constantFrom('replay' as const, 'use' as const) },
  { weight: 2, arbitrary: fc.constantFrom('erase replay' as const, 'erase account' as const) },
);

test('whatever is erased, indexed and deleted when, the rows are those of the log', async () => {
  await fc.assert(
    fc
      .asyncProperty(
        fc.array(fc.tuple(fc.constantFrom(...SESSIONS), step), { minLength: 8, maxLength: 16 }),
        async (steps) => {
          const last = new Map<string, number>();
          let [replays, used, isErased] = [0, 0, false];
          await apply(
            history.record({ stream: 'account-acct_2', account: 'acct_2' }, accountOpened()),
          );
          for (const session of SESSIONS) await apply(...record(session, sessionStarted()));
          for (const [session, given] of steps) {
            const next = (last.get(session) ?? 0) + 1;
            if (given === 'erase') await apply(...record(session, sessionErased()));
            else if (given === 'index') await indexAll();
            else if (given === 'forget') await store.forget!(true);
            else if (given === 'reopen') {
              await store.close();
              store = openStore();
            } else if (given === 'replay') {
              replays += 1;
              await apply(...replayOf(`replay_${replays}`, 100));
            } else if (given === 'erase replay' && replays > 0) {
              await apply(history.record({ stream: `replay-replay_${replays}` }, replayErased()));
              // No command makes this event; it finds no row.
              await apply(
                history.record({ stream: `replay-replay_${replays}` }, replaySessionStarted()),
              );
            } else if (given === 'use') {
              await apply(...usedBy('acct_2', used + 1, 100));
              used += 100;
            } else if (given === 'erase account' && !isErased) {
              isErased = true;
              await apply(
                history.record({ stream: 'account-acct_2', account: 'acct_2' }, accountErased()),
              );
            } else if (typeof given === 'object') {
              const { count, length } = { length: 9, ...given };
              await apply(...record(session, ...turns(next, count, 'x'.repeat(length))));
              last.set(session, next + count - 1);
            }
            expect(await shownContent()).toEqual(rowsOfEvents());
          }
          await indexAll();
          await forgetAll();
          expect(await shownContent()).toEqual(rowsOfEvents());
          const keysIn = (table: TableName) => store.rowsIn(table).map((row) => keyOf(table, row));
          expect(sorted(keysIn('turn_words'))).toEqual(
            sorted(
              store
                .rowsIn('turns')
                .flatMap((row) => (row['end_position'] === null ? [] : [keyOf('turns', row)])),
            ),
          );
          for (const table of ['turns', 'replay_sessions', 'replay_turns', 'usage'] as const)
            expect(store.rowsIn(table)).toHaveLength((await shownRows(table)).length);
        },
      )
      .beforeEach(async () => {
        await end();
        await begin();
      }),
    { numRuns: size({ small: 5, full: 60 }) },
  );
});
