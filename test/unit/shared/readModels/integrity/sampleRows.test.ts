import { beforeEach, expect, jest, test } from '@jest/globals';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import {
  createDamagedRows,
  type DamagedRows,
} from '../../../../../shared/readModels/integrity/damagedRows.ts';
import {
  compareKeys,
  keyOf,
  type AnyRow,
} from '../../../../../shared/readModels/integrity/rowReader.ts';
import {
  createRowSampler,
  type SampledTable,
} from '../../../../../shared/readModels/integrity/sampleRows.ts';
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
import { recordHistory } from '../../../../support/builders/history.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';

const TABLES = 10;
const { keys } = memoryKeys();
let log: StoredEvent[];
let record: ReturnType<typeof recordHistory>['record'];
let rows: Map<SampledTable, AnyRow[]>;
let generation: number;
let replaced: number;
let isShown: boolean;
/** Whether an event of the first agent is appended each time that a row is looked at, and shown later. */
let isAppending: boolean;
let follows: boolean;
let damaged: DamagedRows;

const store = {
  keys,
  readStream: (...given: Parameters<ReturnType<typeof memoryReads>['readStream']>) =>
    memoryReads(log).readStream(...given),
};
const of = (table: string): AnyRow[] => rows.get(table as SampledTable) ?? [];
const sampler = () =>
  createRowSampler({
    store,
    damaged,
    onReplaced: () => (replaced += 1),
    readModels: {
      currentGeneration: async () => generation,
      listRows: async (table, after, limit) =>
        of(table)
          .filter((row) => !after || compareKeys(keyOf(table as SampledTable, row), after) > 0)
          .slice(0, limit),
      async findRow(table, key) {
        const row = of(table).find(
          (each) => compareKeys(keyOf(table as SampledTable, each), key) === 0,
        );
        if (isAppending) log.push(record({ stream: 'agent-agent_1' }, agentUpdated()));
        return row;
      },
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
  damaged = createDamagedRows(() => undefined);
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
async function round(): Promise<void> {
  const { sample } = sampler();
  for (let step = 0; step < 3 * TABLES; step += 1) await sample();
}

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

test('tells when another generation of the read models answers', async () => {
  const { follow } = sampler();
  await follow();
  await follow();
  expect(replaced).toBe(0);
  generation = 2;
  await follow();
  expect(replaced).toBe(1);
});

test('leaves rows of streams of many bytes alone, and reads no more than these', async () => {
  const input = ' '.repeat(500_000);
  for (let turn = 2; turn <= 40; turn += 1)
    log.push(
      record({ stream: 'session-session_1' }, turnStarted(turn, { input })),
      record({ stream: 'session-session_1' }, turnCompleted(turn)),
    );
  await project();
  const last = of('turns').at(-1)!;
  rows = new Map([['turns', [{ ...last, input: 'another' }]]]);
  let events = 0;
  const { readStream } = store;
  const reading = jest.spyOn(store, 'readStream').mockImplementation(async (...given) => {
    const page = await readStream(...given);
    events += page.length;
    return page;
  });
  await round();
  reading.mockRestore();
  expect(damaged.count()).toBe(0);
  expect(events / (3 * TABLES)).toBeLessThan(25);
});
