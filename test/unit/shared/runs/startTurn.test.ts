import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { LRUCache } from 'lru-cache';
import { createAdmissionControl } from '../../../../shared/runs/queueing/admissionControl.ts';
import { startTurn } from '../../../../shared/runs/startTurn.ts';
import { createLiveTurns } from '../../../../shared/runs/live/liveTurns.ts';
import type { OpenRun, RunContext } from '../../../../shared/runs/context.ts';
import type { Claim } from '../../../../shared/requests/idempotency.ts';
import type { PreparedRun, ReplayedTurn, RunRequest } from '../../../../shared/runs/runRequest.ts';
import { appendEvents, NO_STREAM, type StreamHead } from '../../../../shared/eventlog/append.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { sessionStream } from '../../../../shared/eventlog/streams.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import type { ModelCaller } from '../../../../shared/ports/chatModel.ts';
import { bytesOf } from '../../../../shared/ports/eventStore.ts';
import { memoryForRuns } from '../../../support/builders/memory.ts';
import {
  AGENT_ID,
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnFailed,
  turnStarted,
} from '../../../support/builders/events.ts';
import { lagging } from '../../../support/fakes/laggingStore.ts';
import { eventStoreFixture } from '../../../support/stores/sqlite/sqliteEventStore.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

const NOW = Date.UTC(2026, 10, 20, 9);
const WAIT_MS = 600;
/** Far beyond the wait limit: a run that has not ended by then would wait for ever. */
const NEVER_MS = 5_000;
const ROOM = { permits: 10, bytes: 1_000_000 };
const answer = {
  response_id: 'answer_1',
  model: 'm',
  content: 'What was said.',
  tool_calls: [],
  finish_reason: 'stop',
  tokens: { prompt: 1, completion: 1, total: 2 },
};
const actor = { account_id: 'acct_1', key_id: 'k', request_id: 'r' };

let fixture: Awaited<ReturnType<typeof eventStoreFixture>>;
let head: StreamHead;

/** The stream that `append` continues. */
let appendedStream: string;
/** Answers whose memory is held. */
let heldAnswers: number;

async function append(...events: { type: string; data: object }[]): Promise<void> {
  const facts = events.map((event) => ({ id: randomUUID(), ...event }));
  const author = { ...actor, causation_id: 'r', recorded_at: new Date(NOW).toISOString() };
  const target = { stream: appendedStream, head };
  ({ head } = await appendEvents(fixture.store(), target, { events: facts, authorship: author }));
}

beforeEach(async () => {
  fixture = await eventStoreFixture();
  head = NO_STREAM;
  heldAnswers = 0;
  appendedStream = sessionStream('session_1');
  const deadline = new Date(NOW + 600_000).toISOString();
  await append(sessionStarted(), turnStarted(1, { owner: 'other', deadline }));
});
afterEach(() => fixture.dispose());

function begin(
  changes: Partial<RunRequest> = {},
  store = fixture.store(),
  memory = memoryForRuns(ROOM),
  signal = AbortSignal.timeout(NEVER_MS),
): Promise<OpenRun> {
  const context = {
    store,
    damaged: createDamagedStreams(() => undefined),
    runState: {
      sessionCache: new LRUCache({ max: 10 }),
      turnSearches: new LRUCache({ max: 10 }),
      liveTurns: createLiveTurns(),
      failedCompactions: new Map(),
    },
    memory,
    budget: { counter: { count: () => 1 }, turnTokens: new LRUCache({ max: 10 }) },
    catalogue: {
      models: {
        find: () => ({ upstream_model: 'm', context_window: 100_000 }),
        complete: async (
          _model: string,
          _request: object,
          _signal: AbortSignal,
          by: ModelCaller,
        ) => {
          heldAnswers += 1;
          by.hold?.(() => (heldAnswers -= 1));
          return answer;
        },
      },
    },
    limits: { waitMs: WAIT_MS, timeoutMs: 60_000 },
    instance: {
      id: 'self',
      isGone: (owner: string) => owner !== 'other',
      isOverdue: () => false,
    },
    readModels: { findSession: async () => undefined },
    cachedRows: { findApiKey: async () => ({ revoked_at: null, expires_at: null }) },
    clock: { now: () => NOW },
    ids: { uuid: randomUUID },
  } as unknown as RunContext;
  const permit = createAdmissionControl(memory).enqueue(actor.account_id, 0, {});
  const request = {
    actor,
    agent: { agent_id: AGENT_ID, revision: 0, model: 'm', instruction: 'Be brief.', tool: null },
    input: 'on',
    session_id: 'session_1',
    new_session: false,
    ...changes,
  } as unknown as RunRequest;
  return startTurn(context, request, {
    permit,
    signal,
    setOrigins: () => undefined,
  });
}

describe('a run of a session whose turn another living instance runs', () => {
  test('is answered session_busy within the wait limit, and adds nothing', async () => {
    await expect(begin()).rejects.toMatchObject({ code: 'session_busy', retriable: true });
    const events = await fixture
      .store()
      .readStream(sessionStream('session_1'), { direction: 'forwards', limit: 10 });
    expect(events).toHaveLength(2);
  });

  test('begins its turn when that one has ended in time', async () => {
    const running = begin();
    await sleep(WAIT_MS / 4);
    await append(turnCompleted(1));
    expect((await running).state).toMatchObject({ status: 'running', turn: 2, owner: 'self' });
  });
});

describe('a run of a request that may have begun its turn before', () => {
  const claim = (revision: number): Claim<PreparedRun> => ({
    request_id: 'request_1',
    reserved: { revision },
    isFirstAttempt: false,
  });
  const begunElsewhere = turnStarted(2, { idempotency_key: 'request_1', owner: 'elsewhere' });
  const found = { session_id: 'session_1', turn: 2, owner: 'elsewhere', revision: 3 };

  test('finds that turn, however far the session has gone on, and adds nothing', async () => {
    await append(turnCompleted(1), begunElsewhere, turnCompleted(2));
    for (let turn = 3; turn < 90; turn += 1) await append(turnStarted(turn), turnCompleted(turn));
    const before = head.revision;
    await expect(begin({ claim: claim(1) })).rejects.toMatchObject({ turn: found });
    const last = { direction: 'backwards', limit: 1 } as const;
    const [newest] = await fixture.store().readStream(sessionStream('session_1'), last);
    expect(newest).toMatchObject({ revision: before });
  });

  test('finds the turn that another try begins right before its own', async () => {
    await append(turnCompleted(1));
    const store = fixture.store();
    let others = [begunElsewhere];
    const raced = {
      ...store,
      async append(...given: Parameters<typeof store.append>) {
        const meanwhile = others;
        others = [];
        if (meanwhile.length > 0) await append(...meanwhile);
        return store.append(...given);
      },
    };
    await expect(begin({ claim: claim(1) }, raced)).rejects.toMatchObject({ turn: found });
  });

  test('looks again where the node shows less of the session than it has seen', async () => {
    await append(turnCompleted(1), begunElsewhere, turnCompleted(2));
    const store = fixture.store();
    const shown = lagging(store, 2, 150);
    // What is read backwards is up to date; what is read forwards comes from the node that lags.
    const mixed: typeof store = {
      ...store,
      readStream: (stream, options) =>
        (options.direction === 'forwards' ? shown : store).readStream(stream, options),
    };
    await expect(begin({ claim: claim(1) }, mixed)).rejects.toMatchObject({ turn: found });
  });

  test('finds the turn of a session that another try has begun', async () => {
    head = NO_STREAM;
    const stream = { session_id: 'session_2', new_session: true };
    const facts = [sessionStarted(), turnStarted(1, { idempotency_key: 'request_1', owner: 'x' })];
    const author = { ...actor, causation_id: 'r', recorded_at: new Date(NOW).toISOString() };
    await appendEvents(
      fixture.store(),
      { stream: sessionStream('session_2'), head },
      { events: facts.map((event) => ({ id: randomUUID(), ...event })), authorship: author },
    );
    const reserved = { id: 'session_2' };
    await expect(
      begin({ ...stream, claim: { request_id: 'request_1', reserved, isFirstAttempt: true } }),
    ).rejects.toMatchObject({ turn: { session_id: 'session_2', turn: 1 } });
  });

  test('searches for it within memory that it reserves', async () => {
    await append(turnCompleted(1), begunElsewhere);
    const store = fixture.store();
    const memory = memoryForRuns(ROOM);
    const reserved: number[] = [];
    const readStream: typeof store.readStream = (stream, options) => {
      if (options.direction === 'forwards' && options.limit > 1)
        reserved.push(memory.usage('sessionReads').used);
      return store.readStream(stream, options);
    };
    const running = begin({ claim: claim(1) }, { ...store, readStream }, memory);
    await expect(running).rejects.toMatchObject({ turn: found });
    expect(reserved.at(-1)).toBeGreaterThanOrEqual(LIMITS.store.pageBytes);
    expect(memory.usage('sessionReads').used).toBe(0);
  });

  test('begins its own where there is none, and says whose it is', async () => {
    await append(
      turnCompleted(1),
      turnStarted(2, { idempotency_key: 'another' }),
      turnCompleted(2),
    );
    expect((await begin({ claim: claim(1) })).state).toMatchObject({ turn: 3, owner: 'self' });
    const last = { direction: 'backwards', limit: 1 } as const;
    const [newest] = await fixture.store().readStream(sessionStream('session_1'), last);
    expect(JSON.parse(newest!.data)).toMatchObject({ turn: 3, idempotency_key: 'request_1' });
  });
});

describe('a run of a session of large turns', () => {
  const TURNS = 12;
  const LARGE = 512 * 1_024;
  /** An account's share is 8 MiB, and a prompt has 4 MiB at most. */
  const memory = () => memoryForRuns({ permits: 10, bytes: 16 * 1_024 * 1_024 });
  const spaces = ' '.repeat(LARGE);

  /** A store that counts the bytes and the pages that are read backwards. */
  function counting(onPage?: (pages: number) => void) {
    const store = fixture.store();
    const read = { bytes: 0, pages: 0 };
    const readStream: typeof store.readStream = async (stream, options) => {
      const page = await store.readStream(stream, options);
      if (options.direction !== 'backwards') return page;
      for (const event of page) read.bytes += bytesOf(event);
      read.pages += 1;
      onPage?.(read.pages);
      return page;
    };
    return { store: { ...store, readStream }, read };
  }

  async function converse(end: (turn: number) => { type: string; data: object }): Promise<void> {
    await append(turnCompleted(1));
    for (let turn = 2; turn <= TURNS; turn += 1)
      await append(turnStarted(turn, { input: spaces }), end(turn));
  }

  test('shows the newest turns that fit by their bytes, although their tokens are few', async () => {
    await converse(turnCompleted);
    const { store, read } = counting();
    const run = await begin({}, store, memory());
    expect(run.history.map(({ turn }) => turn)).toEqual([6, 7, 8, 9, 10, 11, 12]);
    expect(read.bytes).toBeLessThan(10.5 * LARGE);
  });

  test('reads no more than a page beyond its memory, and is refused when none becomes free', async () => {
    await converse(turnCompleted);
    const ledger = memory();
    const request = { account_id: actor.account_id, purpose: 'prompts', bytes: Infinity } as const;
    for (let held = 0; held < 2; held += 1) ledger.reserveNow(request).resize(3.5 * LARGE * 2);
    const { store, read } = counting();
    await expect(begin({}, store, ledger)).rejects.toMatchObject({ code: 'rate_limited' });
    expect(read.bytes).toBeLessThan(6 * LARGE);
    expect(ledger.usage('prompts').reservations).toBe(2);
  });

  test('waits for its memory without holding any, and then shows the same turns', async () => {
    await converse(turnCompleted);
    const ledger = memory();
    const request = { account_id: actor.account_id, purpose: 'prompts', bytes: Infinity } as const;
    const others = [1, 2].map(() => ledger.reserveNow(request));
    for (const other of others) other.resize(3.5 * LARGE * 2);
    const running = begin({}, fixture.store(), ledger);
    await sleep(WAIT_MS / 2);
    for (const other of others) other.release();
    const { history, reserveBytes } = await running;
    expect(history).toHaveLength(7);
    // It has waited, and was not rejected; its tools are.
    expect(ledger.usage('prompts').rejections).toBe(0);
    expect(reserveBytes(16 * LARGE)).toBe(false);
    expect(ledger.usage('prompts').rejections).toBe(1);
  });

  test('waits for the memory of a replayed compaction, and makes each of them once', async () => {
    const halfAsLarge = spaces.slice(LARGE / 2);
    head = NO_STREAM;
    appendedStream = sessionStream('session_2');
    await append(
      sessionStarted(AGENT_ID, {
        replay: { replay_id: 'replay_1', session_id: 'session_1', role: 'replay' },
      }),
    );
    for (let turn = 1; turn <= TURNS; turn += 1)
      await append(turnStarted(turn, { input: halfAsLarge }), turnCompleted(turn));
    const ledger = memory();
    const other = ledger.forceReserve({
      account_id: actor.account_id,
      purpose: 'prompts',
      bytes: 0,
    });
    // The prompt of the turn fits beside it, but not the turns to summarize.
    other.resize(12 * LARGE);
    const settings = { model: 'm' };
    const summarized = { from_turn: 1, settings, fallback: undefined };
    const replay = {
      replay_id: 'replay_1',
      turn: TURNS + 1,
      after_turn: TURNS,
      settings,
      promptTurns: { from_turn: TURNS - 1, summary: true },
      compactions: [
        { ...summarized, up_to_turn: 4, summary: false },
        { ...summarized, up_to_turn: TURNS - 2, summary: true },
      ],
    } as unknown as ReplayedTurn;
    const running = begin({ replay, session_id: 'session_2' }, fixture.store(), ledger);
    await sleep(WAIT_MS / 2);
    other.release();
    expect((await running).context).toEqual({ turns: 2, dropped: 0, compacted: TURNS - 2 });
    expect(heldAnswers).toBe(0);
    const newest = { direction: 'backwards', limit: 5 } as const;
    const events = await fixture.store().readStream(appendedStream, newest);
    expect(events.map(({ type }) => type)).toEqual([
      'session.turn_started.v1',
      'session.compacted.v1',
      'session.compacted.v1',
      'session.turn_completed.v1',
      'session.turn_started.v1',
    ]);
  });

  test('reads no further page once its client has left', async () => {
    await converse(turnFailed);
    const leaving = new AbortController();
    const { store, read } = counting((pages) => {
      if (pages === 2) leaving.abort(new Error('the client left'));
    });
    await expect(begin({}, store, memory(), leaving.signal)).rejects.toThrow('the client left');
    expect(read.pages).toBe(2);
  });

  test('passes over turns without an answer, of whatever size', async () => {
    await converse(turnFailed);
    const run = await begin({}, fixture.store(), memoryForRuns({ permits: 10, bytes: 4_000_000 }));
    expect(run.history.map(({ turn }) => turn)).toEqual([1]);
  });
});

describe('a run of a session of many short turns', () => {
  test('counts more memory than that of their texts', async () => {
    const TURNS = 60;
    await append(turnCompleted(1));
    for (let turn = 2; turn <= TURNS; turn += 1)
      await append(turnStarted(turn), turnCompleted(turn));
    const ledger = memoryForRuns(ROOM);
    expect((await begin({}, fixture.store(), ledger)).history).toHaveLength(TURNS);
    expect(ledger.usage('prompts').used).toBeGreaterThan(TURNS * 400);
  });

  test('shows the newest turns whose messages a prompt may have', async () => {
    const { toolCalls, promptMessages } = LIMITS.run;
    const fitting = Math.floor(promptMessages / (2 + 2 * toolCalls));
    await append(turnCompleted(1));
    for (let turn = 2; turn <= fitting + 2; turn += 1) {
      const calls = Array.from({ length: toolCalls }, () => toolCalled(turn));
      await append(turnStarted(turn), ...calls, turnCompleted(turn));
    }
    const memory = memoryForRuns({ permits: 10, bytes: 16 * 1_024 * 1_024 });
    const { history, context } = await begin({}, fixture.store(), memory);
    expect([history[0]?.turn, history.length, context.dropped]).toEqual([3, fitting, 2]);
  });
});
