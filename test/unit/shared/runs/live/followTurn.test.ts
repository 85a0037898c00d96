import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, jest, test } from '@jest/globals';
import { createMemoryBroadcast } from '../../../../../infra/broadcast/memory.ts';
import type { ToolCalledData } from '../../../../../shared/sessions/events.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { createLiveTurns } from '../../../../../shared/runs/live/liveTurns.ts';
import { createMirroredTurns } from '../../../../../shared/runs/live/mirrorTurns.ts';
import { START_OF_OUTPUT } from '../../../../../shared/sessions/turns/turnOutputPosition.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { RecordedTurnOutcome } from '../../../../../shared/sessions/turns/recordedTurn.ts';
import { isFreed } from '../../../../support/jest/garbage.ts';
import type { RunResult } from '../../../../../shared/runs/runResult.ts';
import { createOwnOutcome, followTurn } from '../../../../../shared/runs/live/followTurn.ts';

afterEach(() => {
  jest.restoreAllMocks();
});

const subject = { account_id: 'a', session_id: 's', turn: 1 };

/** Somebody who follows a turn that another process runs, and what that one was asked. */
function follower() {
  const { join } = createMemoryBroadcast();
  const asked: string[] = [];
  join('owner').listen((message) => asked.push(message));
  const elsewhere = createMirroredTurns({
    broadcast: join('here'),
    keys: { find: () => new Map() },
  });
  const [stopping, left] = [new AbortController(), new AbortController()];
  const record = { rounds: [], outcome: undefined, deadline: '2999-01-01T00:00:00.000Z' };
  const following = {
    liveTurns: createLiveTurns(),
    mirroredTurns: elsewhere,
    readSnapshot: async () => ({ turn: record, done: () => undefined }),
    now: Date.now,
    stopping: stopping.signal,
  };
  const next = followTurn(following, subject, START_OF_OUTPUT, left.signal).next();
  next.catch(() => undefined);
  return { next, asked, elsewhere, stopping, left };
}

test.each(['stopping', 'left'] as const)(
  'who waits for another process is let go at once, and its mirror with it: %s',
  async (why) => {
    const { next, asked, elsewhere, ...signals } = follower();
    while (asked.length === 0) await new Promise(setImmediate);
    const { turn, leave } = elsewhere.follow(subject, 1);
    leave();
    expect(turn.hasEnded()).toBe(false);
    const reason = new Error(why);
    signals[why].abort(reason);
    await expect(next).rejects.toBe(reason);
    expect(turn.hasEnded()).toBe(true);
  },
);

test('the record of an ended turn is released when its end was passed on', async () => {
  const rounds = [{ reasoning: '', text: 'Hello.', calls: [] }];
  const outcome = { failed: new Error('failed') };
  const turn = { rounds, outcome, deadline: '2999-01-01T00:00:00.000Z' };
  const steps: string[] = [];
  const following = {
    liveTurns: createLiveTurns(),
    mirroredTurns: {
      follow: () => {
        throw new Error('not followed');
      },
    },
    readSnapshot: async () => ({ turn, done: () => void steps.push('released') }),
    now: Date.now,
    stopping: new AbortController().signal,
  };
  const { signal } = new AbortController();
  for await (const { type } of followTurn(following, subject, START_OF_OUTPUT, signal))
    steps.push(type);
  expect(steps).toEqual(['text', 'ended', 'released']);
});

/**
 * Followers of a live turn of this process, whose record can't be read by the first so many. It may have
 * calls that were not published.
 */
async function followToEnd(
  followers: number,
  {
    failing = 0,
    calls = [],
    own,
    isOwnGone,
  }: {
    failing?: number;
    calls?: ToolCalledData[];
    own?: RecordedTurnOutcome;
    isOwnGone?: boolean;
  } = {},
) {
  let now = 0;
  let most = 0;
  const liveTurns = createLiveTurns();
  const publisher = liveTurns.begin(subject, true);
  publisher.publishText(1, 'Hello.');
  const result = { output: 'Hello.' } as RunResult;
  const rounds = [{ reasoning: '', text: 'Hello.', calls }];
  const turn = { rounds, outcome: { result }, deadline: '2999-01-01T00:00:00.000Z' };
  let reads = 0;
  const following = (number: number) => ({
    liveTurns,
    mirroredTurns: {
      follow: () => {
        throw new Error('not followed');
      },
    },
    async readSnapshot() {
      reads += 1;
      if (number < failing) throw new Error('disconnected');
      // By then, all others wait for this read.
      await sleep(100);
      return { turn, done: () => undefined };
    },
    ...((own || isOwnGone) && { awaitOwnOutcome: async () => own }),
    now: Date.now,
    stopping: new AbortController().signal,
  });
  const ends = Array.from({ length: followers }, async (_, number) => {
    const updates = followTurn(
      following(number),
      subject,
      START_OF_OUTPUT,
      new AbortController().signal,
    );
    const types: string[] = [];
    for await (const { type } of updates) types.push(type);
    now += 1;
    return types.join();
  });
  await new Promise(setImmediate);
  publisher.publishEnd();
  const all = Promise.allSettled(ends);
  for (let isOver = false; !isOver; most = Math.max(most, now)) {
    now = 0;
    isOver = await Promise.race([
      all.then(() => true),
      new Promise(setImmediate).then(() => false),
    ]);
  }
  const outcomes = await all;
  const seen = outcomes.map((outcome) =>
    outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as Error).message,
  );
  return { reads, most, seen, bufferedChars: liveTurns.bufferedChars() };
}

test('followers of a live turn share one read of its end, which counts as buffered, and do not all get it at once', async () => {
  const { most, ...rest } = await followToEnd(2_000);
  expect(rest).toEqual({
    reads: 1,
    seen: Array.from({ length: 2_000 }, () => 'text,ended'),
    bufferedChars: 4 * 'Hello.'.length,
  });
  expect(most).toBeLessThan(1_500);
});

test('followers receive a tool call that is recorded, although its append seemed to fail', async () => {
  const { seen } = await followToEnd(2, { calls: [{ round: 1 } as ToolCalledData] });
  expect(seen).toEqual(['text,called,ended', 'text,called,ended']);
});

test.each([
  ['text,called,ended', 0],
  ['text,ended', 1],
])(
  'the client of a run that lost the store receives what it can read of its record: %s',
  async (seen, failing) => {
    const calls = [{ round: 1 } as ToolCalledData];
    const failed = storeUnavailableError('No answer.');
    expect(await followToEnd(1, { calls, failing, own: { failed } })).toMatchObject({
      seen: [seen],
      reads: 1,
    });
  },
);

test.each<[string, RecordedTurnOutcome]>([
  ['succeeds', { result: { output: 'Hello.' } as RunResult }],
  ['fails otherwise', { failed: new Error('failed') }],
])('the client of a run that %s does not read its record', async (_, own) => {
  expect(await followToEnd(1, { own })).toMatchObject({ seen: ['text,ended'], reads: 0 });
});

test('a follower that can not read the end keeps it from no other', async () => {
  const { seen } = await followToEnd(3, { failing: 1 });
  expect(seen).toEqual(['disconnected', 'text,ended', 'text,ended']);
});

/** The outcome for the client of a run that has ended, and a reference to the result. */
function ownOutcome(isRetry: boolean) {
  const result = { output: 'Hello.' } as RunResult;
  const ended = Promise.resolve(result);
  const started = { result: ended, ...(isRetry && { resultWithin: () => ended }) };
  return { own: createOwnOutcome(started), result: new WeakRef(result) };
}

test('a result stays in memory for its client as long as the text of the turn', async () => {
  jest.replaceProperty(LIMITS.stream, 'lingerMs', 200 as never);
  const { own, result } = ownOutcome(false);
  expect(await own().then((outcome) => Object.keys(outcome!))).toEqual(['result']);
  await sleep(250);
  expect(await own()).toBeUndefined();
  expect(await isFreed(result)).toBe(true);
});

test('the stream of a retry keeps no result in memory', async () => {
  const { own, result } = ownOutcome(true);
  expect(await own()).toBeUndefined();
  expect(await isFreed(result)).toBe(true);
});

test('a client whose result is no longer in memory reads its end like other followers', async () => {
  expect(await followToEnd(1, { isOwnGone: true })).toMatchObject({
    seen: ['text,ended'],
    reads: 1,
  });
});
