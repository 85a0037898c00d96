import { beforeEach, expect, jest, test } from '@jest/globals';
import {
  createDamagedStreams,
  type DamagedStreams,
} from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import type { StreamFlaw } from '../../../../../shared/eventlog/reading/streamDamage.ts';
import {
  bytesOf,
  type Position,
  type StoredEvent,
} from '../../../../../shared/ports/eventStore.ts';
import {
  createDamagedRows,
  type DamagedRows,
} from '../../../../../shared/readModels/integrity/damagedRows.ts';
import {
  compareKeys,
  keyOf,
  type AnyRow,
  type KeyValues,
} from '../../../../../shared/readModels/integrity/rowReader.ts';
import {
  createRowSampler,
  type SampledTable,
} from '../../../../../shared/readModels/integrity/sampleRows.ts';
import { createWordRows } from '../../../../../shared/readModels/integrity/wordRows.ts';
import type { LeafComparison } from '../../../../../shared/transparency/leaves/leafComparison.ts';
import type { EndedTurn } from '../../../../../shared/search/turnIndex.ts';
import { readStreamRows } from '../../../../../shared/readModels/integrity/streamRows.ts';
import {
  accountOpened,
  agentCreated,
  agentUpdated,
  keyIssued,
  sessionStarted,
  turnCompleted,
  turnStarted,
} from '../../../../support/builders/events.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';
import type { MemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';

const MIB = 1_048_576;
const TABLES = 11;
const { keys } = memoryKeys();
let log: StoredEvent[];
let record: ReturnType<typeof recordHistory>['record'];
let rows: Map<SampledTable, AnyRow[]>;
let generation: number;
let replaced: number;
/** The end of the last turn that the index of words includes. */
let indexed: Position | null;
let isShown: boolean;
/** Whether an event of the first agent is appended each time that a row is looked at, and shown later. */
let isAppending: boolean;
let follows: boolean;
let damaged: DamagedRows;
let memory: MemoryLedger;
/** The bytes that others hold of it. */
let others: number;
/** The bytes by which a row was larger than the memory that was reserved when it was read. */
let unreserved: number;
let damagedStreams: DamagedStreams;
/** How many events each comparison with leaves had. */
let compared: number[];
/** The flaw of the streams of sessions, and of no others. */
let flaw: StreamFlaw | undefined;

const store = {
  keys,
  readStream: (...given: Parameters<ReturnType<typeof memoryReads>['readStream']>) =>
    memoryReads(log).readStream(...given),
};
const leaves = {
  async findFlaw(events: readonly StoredEvent[]) {
    compared.push(events.length);
    return events[0]?.stream.startsWith('session-') ? flaw : undefined;
  },
} as LeafComparison;
const reserved = (): number => memory.usage('sessionReads').used - others;
const find = (table: string, key: KeyValues): AnyRow | undefined =>
  of(table).find((row) => compareKeys(keyOf(table as SampledTable, row), key) === 0);
const bytesOfRow = (row: AnyRow | undefined): number | undefined =>
  row && Buffer.byteLength(JSON.stringify(row));
const of = (table: string): AnyRow[] => rows.get(table as SampledTable) ?? [];
const sampler = () =>
  createRowSampler({
    source: { store: { ...store, leaves }, damaged: damagedStreams },
    damaged,
    memory,
    onReplaced: () => (replaced += 1),
    readModels: {
      currentGeneration: async () => generation,
      listKeys: async (table, after, limit) =>
        of(table)
          .map((row) => keyOf(table as SampledTable, row))
          .filter((key) => !after || compareKeys(key, after) > 0)
          .slice(0, limit),
      rowBytes: async (table, key) => bytesOfRow(find(table, key)),
      async findRow(table, key) {
        const row = find(table, key);
        unreserved = Math.max(unreserved, bytesOfRow(row)! - reserved());
        if (isAppending) log.push(record({ stream: 'agent-agent_1' }, agentUpdated()));
        return row;
      },
      indexProgress: async () => ({ generation, ended: null, indexed, unindexed_from: null }),
      async untilShown() {
        if (follows) await project();
        return isShown;
      },
    },
  });

async function project(): Promise<void> {
  rows = new Map();
  for (const stream of new Set(log.map((event) => event.stream))) {
    const state = await readStreamRows(store, stream);
    for (const table of ['accounts', 'api_keys', 'agents', 'sessions', 'turns'] as const)
      rows.set(table, [...of(table), ...state.rows[table].values()]);
  }
}

beforeEach(async () => {
  log = [];
  ({ record } = recordHistory());
  [generation, replaced, isShown] = [1, 0, true];
  [isAppending, follows] = [false, false];
  indexed = null;
  memory = memoryFor('sessionReads', 256 * MIB);
  [unreserved, others] = [-Infinity, 0];
  damaged = createDamagedRows(() => undefined);
  damagedStreams = createDamagedStreams(() => undefined);
  flaw = undefined;
  compared = [];
  log.push(record({ stream: 'account-acct_1' }, accountOpened()));
  log.push(record({ stream: 'account-acct_1' }, keyIssued('key_1')));
  for (let agent = 1; agent <= 9; agent += 1)
    log.push(record({ stream: `agent-agent_${agent}` }, agentCreated()));
  log.push(record({ stream: 'session-session_1' }, sessionStarted()));
  log.push(record({ stream: 'session-session_1' }, turnStarted(1)));
  log.push(record({ stream: 'session-session_1' }, turnCompleted(1)));
  await project();
});

/** As many steps as it takes to come by every row. */
async function round({ sample } = sampler()): Promise<void> {
  for (let step = 0; step < 3 * TABLES; step += 1) await sample();
}

test('names a stream whose events do not fit their leaves, and no row of it, until they do', async () => {
  flaw = { reason: 'the event at revision 1 is not the one that was recorded', revision: 1 };
  rows.set('turns', [{ ...of('turns')[0]!, status: 'failed' }]);
  const same = sampler();
  await round(same);
  expect(damagedStreams.list()).toEqual([
    { ...flaw, stream: 'session-session_1', first_revision: 0, last_revision: 2 },
  ]);
  expect(damaged.list()).toEqual([]);
  flaw = undefined;
  await round(same);
  expect(damagedStreams.list()).toEqual([]);
  expect(damaged.list()).toMatchObject([{ table: 'turns', column: 'status' }]);
});

test('forgets no damage that other readers have found', async () => {
  const found = { reason: 'a text is plain behind protected ones', revision: 1 };
  const range = { first_revision: 0, last_revision: 2 };
  damagedStreams.record({ ...found, ...range, stream: 'session-session_1' });
  await round();
  expect(damagedStreams.list()).toMatchObject([found]);
});

test('compares a few events of a long stream, and all before it calls a row damaged', async () => {
  for (let turn = 2; turn <= 40; turn += 1)
    for (const event of [turnStarted(turn), turnCompleted(turn)])
      log.push(record({ stream: 'session-session_1' }, event));
  await project();
  await round();
  expect(Math.max(...compared)).toBe(16);
  rows.set('sessions', [{ ...of('sessions')[0]!, turns: 7 }]);
  await round();
  expect(Math.max(...compared)).toBe(
    log.filter(({ stream }) => stream.startsWith('session')).length,
  );
});

test('records nothing where all rows are what the log says', async () => {
  await round();
  expect(damaged.count()).toBe(0);
});

test('comes by every row, and records those that differ', async () => {
  rows.set(
    'agents',
    of('agents').map((row) => (row['agent_id'] === 'agent_9' ? { ...row, model: 'another' } : row)),
  );
  rows.set(
    'turns',
    of('turns').map((row) => ({ ...row, input: row['output'] })),
  );
  rows.set('api_keys', [...of('api_keys'), { ...of('api_keys')[0]!, key_id: 'key_2' }]);
  await round();
  expect(damaged.list()).toEqual(
    expect.arrayContaining([
      { table: 'agents', key: 'agent_9', column: 'model' },
      { table: 'turns', key: 'session_1/1', column: 'input' },
      { table: 'api_keys', key: 'key_2', column: 'unrecorded' },
    ]),
  );
  expect(damaged.count()).toBe(3);
  await project();
  await sampler().sample();
  expect(damaged.list()).toEqual([{ table: 'api_keys', key: 'key_2', column: 'unrecorded' }]);
});

test('records an earlier row that was put back, unless the read models are behind', async () => {
  log.push(record({ stream: 'agent-agent_1' }, agentUpdated()));
  isShown = false;
  await round();
  expect(damaged.count()).toBe(0);
  isShown = true;
  await round();
  expect(damaged.list()).toEqual([{ table: 'agents', key: 'agent_1', column: 'revision' }]);
});

test('records no row that follows its stream while events are appended to it', async () => {
  [isAppending, follows] = [true, true];
  log.push(record({ stream: 'agent-agent_1' }, agentUpdated()));
  await round();
  expect(damaged.count()).toBe(0);
  // An earlier row that stays while its stream goes on is recorded.
  follows = false;
  await round();
  expect(damaged.list()).toEqual([{ table: 'agents', key: 'agent_1', column: 'revision' }]);
});

/** Indexes the words of all turns of the session. */
async function indexWords(): Promise<void> {
  const turns = of('turns') as EndedTurn[];
  const rowOf = createWordRows(keys);
  const words = await Promise.all(turns.map((turn) => rowOf({ ...turn, account_id: 'acct_1' })));
  rows.set('turn_words', words as AnyRow[]);
  indexed = turns.at(-1)!.end_position;
}

test('records words that are not those of their turn, or belong to none', async () => {
  await indexWords();
  await round();
  expect(damaged.count()).toBe(0);
  const [words] = of('turn_words');
  rows.set('turn_words', [
    { ...words, words: 'aaaaaaaa' },
    { ...words, turn: 2 },
  ]);
  await round();
  expect(damaged.list()).toEqual([
    { table: 'turn_words', key: 'session_1/1', column: 'words' },
    { table: 'turn_words', key: 'session_1/2', column: 'unrecorded' },
  ]);
  rows.set('turn_words', [words!]);
  await round();
  expect(damaged.count()).toBe(0);
});

test('records that a turn which was indexed lacks its words, and no turn that was not yet', async () => {
  await round();
  expect(damaged.count()).toBe(0);
  await indexWords();
  const words = of('turn_words');
  rows.delete('turn_words');
  await round();
  expect(damaged.list()).toEqual([{ table: 'turn_words', key: 'session_1/1', column: 'missing' }]);
  rows.set('turn_words', words);
  await round();
  expect(damaged.count()).toBe(0);
});

test('tells when another generation of the read models answers', async () => {
  const { follow } = sampler();
  await follow();
  await follow();
  expect(replaced).toBe(0);
  generation = 2;
  await follow();
  expect(replaced).toBe(1);
});

/** Appends turns to the session, and counts the events and bytes of the reads of each step. */
async function longSession(turns: number, input: string) {
  for (let turn = 2; turn <= turns; turn += 1)
    log.push(
      record({ stream: 'session-session_1' }, turnStarted(turn, { input })),
      record({ stream: 'session-session_1' }, turnCompleted(turn)),
    );
  await project();
  const { readStream } = store;
  let [events, bytes] = [0, 0];
  const reading = jest.spyOn(store, 'readStream').mockImplementation(async (...given) => {
    const page = await readStream(...given);
    events += page.length;
    for (const event of page) bytes += bytesOf(event);
    return page;
  });
  const { sample } = sampler();
  const most = { events: 0, bytes: 0 };
  return {
    most,
    async untilDamaged(count: number, steps = 1_500): Promise<void> {
      for (let step = 0; damaged.count() < count && step < steps; step += 1) {
        [events, bytes] = [0, 0];
        await sample();
        most.events = Math.max(most.events, events);
        most.bytes = Math.max(most.bytes, bytes);
      }
      reading.mockRestore();
    },
  };
}

test.each([
  ['of many events', 700, 'a'],
  ['of many bytes', 20, ' '.repeat(500_000)],
])(
  'compares rows of streams %s in bounded parts, beside the other rows',
  async (_, turns, input) => {
    const { most, untilDamaged } = await longSession(turns, input);
    rows.set('turns', [{ ...of('turns')[turns - 2]!, output: 'another' }]);
    rows.set('sessions', [{ ...of('sessions')[0]!, agent_id: 'another' }]);
    rows.set('agents', [{ ...of('agents')[8]!, model: 'another' }]);
    await untilDamaged(3);
    expect(damaged.list()).toEqual(
      expect.arrayContaining([
        { table: 'turns', key: `session_1/${turns - 1}`, column: 'output' },
        { table: 'sessions', key: 'session_1', column: 'agent_id' },
        { table: 'agents', key: 'agent_9', column: 'model' },
      ]),
    );
    expect(most.events).toBeLessThanOrEqual(2_500);
    expect(most.bytes).toBeLessThan(3 * 2 * 1_048_576);
  },
);

test('reads no more for an early row of a long stream', async () => {
  const { most, untilDamaged } = await longSession(700, 'a');
  rows.set('turns', [of('turns')[448]!]);
  await untilDamaged(1, 60);
  expect(most.events).toBe(1_000);
});

test('names no row of a long stream that matches', async () => {
  const { untilDamaged } = await longSession(700, 'a');
  rows.set('turns', of('turns').slice(-2));
  await untilDamaged(1, 60);
  expect(damaged.count()).toBe(0);
});

test('reserves memory for the rows that it holds, and for what it reads of a stream', async () => {
  await longSession(20, ' '.repeat(500_000));
  const { sample } = sampler();
  const held = new Set<number>();
  for (let step = 0; step < 200; step += 1) {
    await sample();
    held.add(reserved());
  }
  expect(unreserved).toBeLessThan(-4 * MIB);
  // Between steps, that of a row whose comparison continues.
  expect(Math.max(...held)).toBeGreaterThan(4 * 500_000);
  expect(Math.max(...held)).toBeLessThan(4 * 510_000);
  expect(held).toContain(0);
});

test('reads no row without memory, and goes on when there is some', async () => {
  rows.set(
    'agents',
    of('agents').map((row) => ({ ...row, model: 'another' })),
  );
  const request = { purpose: 'sessionReads', bytes: 128 * MIB } as const;
  const permits = ['a', 'b'].map((account_id) => memory.forceReserve({ ...request, account_id }));
  const same = sampler();
  for (let step = 0; step < 3 * TABLES; step += 1)
    await expect(same.sample()).rejects.toMatchObject({ code: 'overloaded' });
  expect([unreserved, damaged.count()]).toEqual([-Infinity, 0]);
  permits.forEach(({ release }) => release());
  await round(same);
  expect(damaged.count()).toBe(9);
});

test('passes over a row that lacks memory, without calling it repaired', async () => {
  rows.set(
    'turns',
    of('turns').map((row) => ({ ...row, output: 'x'.repeat(3 * MIB) })),
  );
  const same = sampler();
  await round(same);
  expect(damaged.list()).toMatchObject([{ table: 'turns', column: 'output' }]);
  others = 245 * MIB;
  memory.forceReserve({ account_id: 'a', purpose: 'sessionReads', bytes: others });
  unreserved = -Infinity;
  for (let step = 0; step < 3 * TABLES; step += 1) await same.sample().catch(() => undefined);
  expect(unreserved).toBeLessThan(-4 * MIB);
  expect(unreserved).toBeGreaterThan(-Infinity);
  expect(damaged.count()).toBe(1);
});
