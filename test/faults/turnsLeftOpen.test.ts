import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { AppendFault } from '../support/servers/eventstoredb-node/faults.ts';
import {
  startEventStoreDbNode,
  type EventStoreDbNode,
} from '../support/servers/eventstoredb-node/index.ts';
import { eventually } from '../support/processes/operator.ts';
import { size } from '../support/jest/size.ts';
import { startTestService, type Reply, type TestService } from '../support/http/service.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const RUNS = 16;
const MANY_RUNS = 200;
/**
 * From the return of the store to the end of the last turn that it had left open. Seconds say
 * something on a quiet machine only, where the full size runs; how many are closed together is in
 * the closer's own tests.
 */
const CLOSED_WITHIN_MS = size({ small: 30_000, full: 2_000 });
/**
 * The adapter sends an append again that was lost in the silence of a node that lives, after four
 * seconds.
 */
const CLOSED_AFTER_SILENCE_MS = size({ small: 34_000, full: 6_000 });
const FROM_THE_BEGINNING = { from: 0n, direction: 'forwards', limit: 1_000 } as const;

let folder: string;
let node: EventStoreDbNode;
let service: TestService;
let gate: PromiseWithResolvers<void>;

beforeEach(async () => {
  gate = Promise.withResolvers();
  folder = await temporaryFolder();
  node = await startEventStoreDbNode({ folder });
  const script = async () => {
    await gate.promise;
    return { text: 'Hello.' };
  };
  service = await startTestService(script, {
    EVENTSTOREDB_URL: node.connectionString,
    VISIBILITY_WAIT_MS: '2000',
  });
});
afterEach(async () => {
  await service.close();
  await node.close();
  await rm(folder, { recursive: true });
});

/** The types of each session's events, straight from the node's log. */
function sessionsInLog(): Map<string, string[]> {
  const records = node.log.readAllForwards({ commit: 0n, prepare: 0n }, 100_000);
  const names = new Set(
    records.map(({ stream }) => stream).filter((stream) => stream.startsWith('session-')),
  );
  const typesOf = (stream: string): string[] => {
    const read = node.log.readStream(stream, FROM_THE_BEGINNING);
    return read.kind === 'found'
      ? read.records.map(({ type }) => type.replace(/^session\.|\.v1$/g, ''))
      : [];
  };
  return new Map([...names].map((stream) => [stream, typesOf(stream)]));
}

const isOpen = (types: readonly string[]): boolean =>
  types.at(-1) === 'turn_started' || types.at(-1) === 'tool_called';
const openTurns = (): string[] =>
  [...sessionsInLog()].filter(([, types]) => isOpen(types)).map(([stream]) => stream);

/**
 * How long turns stay open once the service can use the store again: how soon it tries a node that
 * has refused it is the adapter's affair, and its tests'.
 */
async function untilClosed(): Promise<number> {
  await eventually(
    () => service.get('/health/ready'),
    ({ status }) => status === 200,
  );
  const backAt = performance.now();
  while (openTurns().length > 0 && performance.now() - backAt < CLOSED_AFTER_SILENCE_MS)
    await sleep(20);
  return performance.now() - backAt;
}

/**
 * Begins that many runs, each in a session of its own, and resolves once the model works on all of
 * them.
 */
async function begin(count: number): Promise<Promise<Reply>[]> {
  const agent = await service.createAgent();
  const running = Array.from({ length: count }, () =>
    service.post(`/v1/agents/${agent}/run`, { input: 'x' }),
  );
  await service.model.received(count);
  return running;
}

type Switch = () => Promise<void> | void;

const AWAY: readonly [how: string, closedWithinMs: number, go: Switch, comeBack: Switch][] = [
  ['stopped', CLOSED_WITHIN_MS, () => node.stop(), () => node.start()],
  [
    'unavailable',
    CLOSED_WITHIN_MS,
    () => void (node.faults.unavailable = true),
    () => void (node.faults.unavailable = false),
  ],
  [
    'silent',
    CLOSED_AFTER_SILENCE_MS,
    () => void (node.faults.silent = true),
    () => void (node.faults.silent = false),
  ],
];

test.each(AWAY)(
  'a store that is %s in mid-run: every turn that was answered 503 is closed once, within %i ms of its return',
  async (_how, closedWithinMs, go, comeBack) => {
    const running = await begin(RUNS);
    await go();
    gate.resolve();
    const replies = await Promise.all(running);
    expect(new Set(replies.map(({ status, body }) => `${status} ${body.code}`))).toEqual(
      new Set(['503 store_unavailable']),
    );
    expect(openTurns()).toHaveLength(RUNS);

    await comeBack();
    const closedAfter = await untilClosed();
    expect(openTurns()).toEqual([]);
    expect(closedAfter).toBeLessThan(closedWithinMs);
    await sleep(1_000);
    const sessions = [...sessionsInLog().values()];
    expect(sessions).toEqual(
      Array.from({ length: RUNS }, () => ['started', 'turn_started', 'turn_interrupted']),
    );
  },
  120_000,
);

test('a store that is away for some seconds only: every run is answered as if nothing had been', async () => {
  const running = await begin(RUNS);
  await node.stop();
  gate.resolve();
  await sleep(3_000);
  await node.start();
  const replies = await Promise.all(running);
  expect(replies.map(({ status }) => status)).toEqual(Array.from({ length: RUNS }, () => 200));
  expect([...sessionsInLog().values()]).toEqual(
    Array.from({ length: RUNS }, () => ['started', 'turn_started', 'turn_completed']),
  );
}, 120_000);

test.each<[AppendFault]>([
  ['no_answer_after_write'],
  ['connection_lost_after_write'],
  ['stream_error_after_write'],
  ['late_write'],
])(
  'ends of turns that are lost with "%s" as the store goes away stand once, and no turn stays open',
  async (fault) => {
    const running = await begin(RUNS);
    let lost = 0;
    node.faults.onAppend = () => {
      lost += 1;
      // Half of them meet the fault, and what comes after is refused.
      if (lost === RUNS / 2) setTimeout(() => void (node.faults.unavailable = true), 100);
      return lost <= RUNS / 2 ? fault : 'no_answer_before_write';
    };
    gate.resolve();
    const replies = await Promise.all(running);
    node.faults.onAppend = () => 'none';
    node.faults.unavailable = false;
    const closedAfter = await untilClosed();
    expect(openTurns()).toEqual([]);
    expect(closedAfter).toBeLessThan(CLOSED_WITHIN_MS);

    await sleep(1_000);
    const sessions = sessionsInLog();
    for (const types of sessions.values()) {
      expect([
        ['started', 'turn_started', 'turn_completed'],
        ['started', 'turn_started', 'turn_interrupted'],
      ]).toContainEqual(types);
    }
    for (const { status, body } of replies) {
      if (status === 200)
        expect(sessions.get(`session-${body.data.session_id as string}`)?.at(-1)).toBe(
          'turn_completed',
        );
      else expect([status, body.code]).toEqual([503, 'store_unavailable']);
    }
  },
  120_000,
);

test('hundreds of turns that were left open are closed, within 2 s on a quiet machine', async () => {
  const running = await begin(MANY_RUNS);
  await node.stop();
  gate.resolve();
  await Promise.all(running);
  expect(openTurns()).toHaveLength(MANY_RUNS);
  await node.start();
  const closedAfter = await untilClosed();
  expect(openTurns()).toEqual([]);
  expect(closedAfter).toBeLessThan(CLOSED_WITHIN_MS);
}, 120_000);
