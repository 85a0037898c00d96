import { beforeEach, expect, test } from '@jest/globals';
import { compareReplayed } from '../../../../../services/followers/replays/compareReplayed.ts';
import { createFairSemaphore } from '../../../../../shared/lib/concurrency/fairSemaphore.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import type { CompareTurn, TurnPair } from '../../../../../shared/replays/comparison/turnPair.ts';

const { tries } = LIMITS.replays;
const crashedTurns = createFairSemaphore(
  'test_crashed',
  { permits: 1, bytes: Infinity },
  { permits: 1, bytes: Infinity },
);

/** What happened, in order. */
let steps: string[];
let deaths: number;
beforeEach(() => {
  [steps, deaths] = [[], 0];
});

const TURN = { started: { turn: 2 }, calls: ['call'], end: { data: { tokens: { total: 5 } } } };
const REPLAYED = { ...TURN, session_id: 'session_2', other_tokens: 1 };

/** Compares turn 2 with `compareTurn`. */
function compare(
  compareTurn: CompareTurn,
  replayed: unknown = REPLAYED,
  { signal } = new AbortController(),
) {
  const attempts = {
    countDeaths: async () => deaths,
    begin: async ({ turn }: { turn: number }) => void steps.push(`begin ${turn}`),
    end: async ({ turn }: { turn: number }) => void steps.push(`end ${turn}`),
  };
  const replaying = {
    context: { logger: { warn: () => undefined } },
    attempts,
    crashedTurns,
    compareTurn,
  } as unknown as Parameters<typeof compareReplayed>[0];
  const run = {
    log: { actor: { account_id: 'acct_1', request_id: 'replay_1' } },
    session: { session_id: 'session_1' },
    budget: { uncompared: (_: string, turn: number) => (turn === 2 ? 12 : 100) },
    signal,
  } as unknown as Parameters<typeof compareReplayed>[1];
  return compareReplayed(replaying, run, { replay_session_id: 'session_2' }, {
    recorded: TURN,
    replayed,
  } as unknown as TurnPair);
}

const COMPARED = { turn: 2 } as Awaited<ReturnType<CompareTurn>>;

test('a comparison is an attempt of its turn, also if it fails', async () => {
  const compareTurn = async () => {
    steps.push('compare');
    return COMPARED;
  };
  expect(await compare(compareTurn)).toBe(COMPARED);
  const error = new Error('It fails.');
  await expect(compare(() => Promise.reject(error))).rejects.toBe(error);
  expect(steps).toEqual(['begin 2', 'compare', 'end 2', 'begin 2', 'end 2']);
});

test.each([0, 1])(
  'a judge is asked outside that attempt and its permits, after %i deaths',
  async (died) => {
    deaths = died;
    await compare(async (_, { outsideAttempt }) => {
      await outsideAttempt(async () => {
        const request = { account_id: 'acct_1', bytes: 0 };
        const permit = crashedTurns.tryAcquire(request);
        steps.push(permit ? 'judge' : 'no permit');
        permit?.release();
      });
      const isHeld = crashedTurns.tryAcquire({ account_id: 'acct_1', bytes: 0 });
      steps.push(isHeld ? 'alone' : 'one after another');
      isHeld?.release();
      return COMPARED;
    });
    const order = died === 0 ? 'alone' : 'one after another';
    expect(steps).toEqual(['begin 2', 'end 2', 'judge', 'begin 2', order, 'end 2']);
    const free = crashedTurns.tryAcquire({ account_id: 'acct_1', bytes: 0 });
    expect(free).toBeDefined();
    free?.release();
  },
);

test('no attempt begins after a stop while a judge was asked', async () => {
  const stopping = new AbortController();
  const stopped = new Error('stopped');
  const compareTurn: CompareTurn = async (_, { outsideAttempt }) => {
    await outsideAttempt(async () => stopping.abort(stopped));
    return COMPARED;
  };
  await expect(compare(compareTurn, REPLAYED, stopping)).rejects.toBe(stopped);
  expect(steps).toEqual(['begin 2', 'end 2']);
});

test('a turn in which as many processes died as it has attempts fails, with its tokens and without its texts', async () => {
  deaths = tries;
  const pairs: TurnPair[] = [];
  const compareTurn: CompareTurn = async (pair) => {
    pairs.push(pair);
    return COMPARED;
  };
  expect(await compare(compareTurn)).toBe(COMPARED);
  expect(pairs).toMatchObject([
    {
      recorded: { calls: [] },
      replayed: { calls: [], other_tokens: 12 - 5 },
      refused: 'crash',
    },
  ]);
  expect(steps).toEqual([]);
});

test('a turn that was not replayed is compared without an attempt', async () => {
  deaths = tries;
  expect(await compare(async () => COMPARED, null)).toBe(COMPARED);
  expect(steps).toEqual([]);
});
