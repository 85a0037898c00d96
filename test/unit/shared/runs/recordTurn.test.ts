import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { OpenRun, RunContext } from '../../../../shared/runs/context.ts';
import { createOpenTurnQueue } from '../../../../shared/runs/recovery/openTurnQueue.ts';
import { recordTurnEnd, recordTurnEvents } from '../../../../shared/runs/recordTurn.ts';
import { storeUnavailableError, TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { appendEvents, headOf, NO_STREAM } from '../../../../shared/eventlog/append.ts';
import { decodeEvent } from '../../../../shared/eventlog/codec.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { commitEventTexts } from '../../../../shared/eventlog/encryption/sealTexts.ts';
import { sessionStream } from '../../../../shared/eventlog/streams.ts';
import { createLogger } from '../../../../shared/lib/logger.ts';
import { countWait, withWaitBudget } from '../../../../shared/lib/time/waitBudget.ts';
import type { EncodedEvent, EventStore } from '../../../../shared/ports/eventStore.ts';
import {
  AGENT_ID,
  sessionStarted,
  toolCallData,
  toolCalled,
  turnCompleted,
  turnCompletedData,
  turnInterrupted,
  turnStartData,
  turnStarted,
} from '../../../support/builders/events.ts';
import { eventStoreFixture } from '../../../support/stores/sqlite/sqliteEventStore.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

const SESSION = 'session_1';
const STREAM = sessionStream(SESSION);
const actor = { account_id: 'acct_1', key_id: 'k', request_id: 'r' };

/** What happens to one append: written or not, and answered or not. */
type Fate =
  'written' | 'lost_after_write' | 'lost_before_write' | 'conflict' | 'conflict_after_write';

let fixture: Awaited<ReturnType<typeof eventStoreFixture>>;
let fates: Fate[];
let sent: EncodedEvent[][];
let context: RunContext;
let run: OpenRun;

const readAll = () => fixture.store().readStream(STREAM, { direction: 'forwards', limit: 1_000 });
const types = async (): Promise<string[]> =>
  (await readAll()).map(({ type }) => type.replace(/^session\.|\.v1$/g, ''));

async function appendByOthers(...events: { type: string; data: object }[]): Promise<void> {
  if (events.length === 0) return;
  const last = (await readAll()).at(-1);
  const head = last ? headOf(decodeEvent(last)) : NO_STREAM;
  const authorship = { ...actor, causation_id: 'r', recorded_at: '2026-11-21T09:00:00.000Z' };
  const named = events.map((event) => ({ id: randomUUID(), ...event }));
  const sealed = await commitEventTexts(fixture.store().keys, undefined, named);
  await appendEvents(fixture.store(), { stream: STREAM, head }, { ...sealed, authorship });
}

/** What others do right after an append that was written and not answered. */
let meanwhile: { type: string; data: object }[];

const append: EventStore['append'] = async (stream, expected, events) => {
  sent.push([...events]);
  const fate = fates.shift() ?? 'written';
  if (fate === 'conflict') throw new TurnlogError('stream_conflict', 'The stream is elsewhere.');
  if (fate === 'lost_before_write') throw storeUnavailableError('No answer.');
  const written = await fixture.store().append(stream, expected, events);
  await appendByOthers(...meanwhile.splice(0));
  if (fate === 'lost_after_write') throw storeUnavailableError('No answer.');
  if (fate === 'conflict_after_write')
    throw new TurnlogError('stream_conflict', 'The stream is elsewhere.');
  return written;
};

beforeEach(async () => {
  fixture = await eventStoreFixture();
  fates = [];
  sent = [];
  meanwhile = [];
  await appendByOthers(sessionStarted(), turnStarted(1));
  const store: EventStore = { ...fixture.store(), append };
  context = {
    store,
    damaged: createDamagedStreams(() => undefined),
    runState: { openTurnQueue: createOpenTurnQueue() },
    clock: { now: () => Date.UTC(2026, 10, 21) },
    ids: { uuid: randomUUID, typeId: (prefix: string) => prefix },
    logger: createLogger('silent'),
  } as unknown as RunContext;
  run = {
    request: { actor, session_id: SESSION },
    causation_id: 'c',
    head: headOf(decodeEvent((await readAll()).at(-1)!)),
    state: {
      status: 'running',
      agent_id: AGENT_ID,
      turn: 1,
      owner: turnStartData.owner,
      deadline: turnStartData.deadline,
    },
  } as unknown as OpenRun;
});
afterEach(() => fixture.dispose());

const end = () =>
  recordTurnEnd(context, run, {
    type: 'complete_turn',
    run: run.state,
    answer: turnCompletedData(1),
  });
const callTools = (...call_ids: string[]) =>
  recordTurnEvents(
    context,
    run,
    call_ids.map((call_id) => ({
      type: 'record_tool_call',
      run: run.state,
      call: toolCallData(1, { call_id }),
    })),
  );
const callTool = (call_id: string) => callTools(call_id);

test('an end is not sent again once its request has waited for its whole time', async () => {
  fates = ['lost_before_write'];
  await withWaitBudget(
    0,
    () => true,
    () => expect(end()).rejects.toMatchObject({ code: 'store_unavailable' }),
  );
  expect(sent).toHaveLength(1);
  expect(context.runState.openTurnQueue.size).toBe(1);
});

test('the calls and the end of a turn share the time for an outage, and the next outage has its own', async () => {
  fates = Array.from({ length: 1_000 }, () => 'lost_before_write');
  await expect(callTool('a')).rejects.toMatchObject({ code: 'store_unavailable' });
  const attempts = sent.length;
  expect(attempts).toBeGreaterThan(10);
  await expect(callTool('b')).rejects.toMatchObject({ code: 'store_unavailable' });
  // A short pause may still fit.
  expect(sent.length - attempts).toBeLessThan(5);
  fates = [];
  await callTool('c');
  fates = ['lost_before_write', 'lost_before_write'];
  await end();
  expect(await types()).toEqual(['started', 'turn_started', 'tool_called', 'turn_completed']);
});

test('each recorded event lets a long run wait for the whole limit again', async () => {
  await withWaitBudget(
    5_000,
    () => true,
    async () => {
      countWait(performance.now() - 6_000);
      await callTool('a');
      fates = ['lost_before_write'];
      await end();
    },
  );
  expect(await types()).toEqual(['started', 'turn_started', 'tool_called', 'turn_completed']);
});

test('an end whose append was answered too late is sent again with the same id, and stands once', async () => {
  fates = ['lost_after_write', 'lost_after_write'];
  expect((await end()).position).toBe((await readAll()).at(-1)!.position);
  expect([new Set(sent.map(([event]) => event!.id)).size, await types()]).toEqual([
    1,
    ['started', 'turn_started', 'turn_completed'],
  ]);
});

test('an end that had been written is found where a store takes the second try for a conflict', async () => {
  fates = ['lost_after_write', 'conflict'];
  expect((await end()).position).toBe((await readAll()).at(-1)!.position);
  expect([await types(), context.runState.openTurnQueue.size]).toEqual([
    ['started', 'turn_started', 'turn_completed'],
    0,
  ]);
});

test('tool calls are recorded once the store is available again', async () => {
  fates = ['lost_before_write', 'lost_before_write', 'lost_after_write'];
  await callTools('a', 'b');
  expect(await types()).toEqual(['started', 'turn_started', 'tool_called', 'tool_called']);
});

test('a tool call that was written although its append failed does not keep the turn from ending', async () => {
  fates = [
    'lost_after_write',
    ...Array.from({ length: 1_000 }, () => 'lost_before_write' as const),
  ];
  await expect(callTool('a')).rejects.toMatchObject({ code: 'store_unavailable' });
  fates = [];
  await end();
  expect(await types()).toEqual(['started', 'turn_started', 'tool_called', 'turn_completed']);
});

test('tool calls of one append that had been written are found together behind a conflict', async () => {
  fates = ['conflict_after_write'];
  expect((await callTools('a', 'b', 'c')).position).toBe((await readAll()).at(-1)!.position);
  await end();
  expect(await types()).toEqual([
    'started',
    'turn_started',
    'tool_called',
    'tool_called',
    'tool_called',
    'turn_completed',
  ]);
});

test('a tool call that had been written is found behind a conflict, and the next one follows it', async () => {
  fates = ['conflict_after_write', 'conflict'];
  await callTool('a');
  await callTool('b');
  await end();
  expect(await types()).toEqual([
    'started',
    'turn_started',
    'tool_called',
    'tool_called',
    'turn_completed',
  ]);
});

test.each([
  ['its end', end],
  ['a tool call', () => callTool('a')],
])(
  'a turn that somebody else has interrupted is said to be, by %s, and nothing is added',
  async (_what, act) => {
    await appendByOthers(toolCalled(1, { call_id: 'late' }), turnInterrupted(1), turnStarted(2));
    await expect(act()).rejects.toMatchObject({
      code: 'turn_interrupted',
      retriable: true,
      retryAfterSeconds: 1,
    });
    expect([(await types()).length, context.runState.openTurnQueue.size]).toEqual([5, 0]);
  },
);

test.each([
  ['interrupted', [turnInterrupted(1)]],
  ['interrupted, and followed by another', [turnInterrupted(1), turnStarted(2), turnCompleted(2)]],
  ['left behind by another, which goes on', [turnInterrupted(1), turnStarted(2)]],
])(
  'a tool call that had been written does not hide that its turn was %s',
  async (_what, others) => {
    fates = ['conflict_after_write'];
    meanwhile = [...others];
    await expect(callTool('a')).rejects.toMatchObject({
      code: 'turn_interrupted',
      retriable: true,
    });
    await expect(end()).rejects.toMatchObject({ code: 'turn_interrupted' });
    expect(await types()).toEqual([
      'started',
      'turn_started',
      'tool_called',
      ...others.map(({ type }) => type.replace(/^session\.|\.v1$/g, '')),
    ]);
  },
);

test('an end that had been written is found though the next turn has followed it', async () => {
  fates = ['conflict_after_write'];
  meanwhile = [turnStarted(2)];
  const { position } = await end();
  const own = (await readAll())[2]!;
  expect([position, run.head.revision, (await types()).length]).toEqual([
    own.position,
    own.revision,
    4,
  ]);
});

test('an end that can not be recorded for ten seconds leaves the turn to be closed later', async () => {
  fates = Array.from({ length: 1_000 }, () => 'lost_before_write');
  const began = performance.now();
  await expect(end()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(performance.now() - began).toBeLessThan(11_000);
  expect(context.runState.openTurnQueue.take()).toMatchObject({ session_id: SESSION, revision: 2 });
}, 20_000);

test('an end that others come before without a pause is given up after ten seconds', async () => {
  const { append: appendToStore } = context.store;
  context.store.append = async (...appended) => {
    await appendByOthers(toolCalled(1, { call_id: randomUUID() }));
    return appendToStore(...appended);
  };
  const began = performance.now();
  await expect(end()).rejects.toMatchObject({ code: 'store_unavailable' });
  expect(performance.now() - began).toBeLessThan(11_000);
  expect([sent.length < 100, context.damaged.list(), context.runState.openTurnQueue.size]).toEqual([
    true,
    [],
    1,
  ]);
}, 20_000);

test('a store that refuses every append after what it shows is given up: the stream is damaged', async () => {
  fates = Array.from({ length: 1_000 }, () => 'conflict');
  await expect(end()).rejects.toMatchObject({ code: 'stream_damaged' });
  expect([
    sent.length < 50,
    context.damaged.has(STREAM),
    context.runState.openTurnQueue.size,
  ]).toEqual([true, true, 0]);
});
