import { beforeEach, expect, jest, test } from '@jest/globals';
import { LRUCache } from 'lru-cache';
import { startOnce, type StartedRun } from '../../../../shared/runs/startOnce.ts';
import type { RunContext } from '../../../../shared/runs/context.ts';
import { TurnAlreadyStarted } from '../../../../shared/runs/turnSearch.ts';
import { createPermitPool } from '../../../../shared/lib/concurrency/capacity.ts';
import { turnStarted } from '../../../support/builders/events.ts';
import { recordHistory } from '../../../support/builders/history.ts';

const session_id = 'session_1';
const claim = { request_id: 'request', reserved: {}, isFirstAttempt: true };
const never = new Promise<never>(() => undefined);
const found = { session_id, turn: 1, owner: 'x', revision: 1, position: '1', context: undefined };

let context: RunContext;
let replayed: number;
beforeEach(() => {
  replayed = 0;
  context = {
    limits: { waitMs: 200 },
    onIdempotentReplay: () => (replayed += 1),
    runState: {
      startingTurns: new Map(),
      turnEndLookups: new Map([[`${session_id} 1`, never]]),
      // One place of each account.
      turnWaits: createPermitPool('test', { permits: 2, bytes: Infinity }),
    },
  } as unknown as RunContext;
});

const begin = (account_id = 'acct_1'): Promise<StartedRun> =>
  startOnce(context, { account_id, session_id, claim }, async () => {
    throw new TurnAlreadyStarted(found as TurnAlreadyStarted['turn']);
  });

test('those who wait until another try has begun its turn take a place each', async () => {
  context.runState.startingTurns.set(claim.request_id, never);
  const first = begin();
  await expect(begin()).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(first).rejects.toMatchObject({ code: 'idempotency_in_progress' });
  await expect(begin()).rejects.toMatchObject({ code: 'idempotency_in_progress' });
  expect([context.runState.turnWaits.activeCount(), replayed]).toEqual([0, 0]);
});

test('and so do those who wait for its end, which is no answer yet', async () => {
  const [one, other] = [await begin(), await begin()];
  const waiting = one.resultWithin!(200);
  await expect(other.resultWithin!(200)).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(waiting).rejects.toMatchObject({ code: 'idempotency_in_progress' });
  expect([context.runState.turnWaits.activeCount(), replayed]).toEqual([0, 0]);
});

test('those who waited for its end continue in the turns of their accounts', async () => {
  const { promise: turn, resolve: giveTurn } = Promise.withResolvers<void>();
  let waiting = 0;
  const waitToResume = (): Promise<void> => {
    waiting += 1;
    return turn;
  };
  const readModels = { showLater: () => true };
  Object.assign(context, { waitToResume, readModels });
  const answer = { output: 'done' };
  const end = Promise.resolve({ answer, position: '1' });
  context.runState.turnEndLookups.set(`${session_id} 1`, end as never);
  const run = await begin();
  let isAnswered = false;
  const result = run.result.finally(() => (isAnswered = true));
  for (let count = 0; count < 10; count += 1) await Promise.resolve();
  expect([waiting, isAnswered]).toEqual([1, false]);
  giveTurn();
  expect(await result).toBe(answer);
});

test('a first attempt that another one has overtaken joins its turn, and starts none', async () => {
  const { startingTurns } = context.runState;
  const started = turnStarted(1, { idempotency_key: claim.request_id });
  const stored = recordHistory().record({ stream: `session-${session_id}` }, started);
  Object.assign(context, { store: { readStream: async () => [stored] } });
  Object.assign(context.runState, { turnSearches: new LRUCache({ max: 1 }) });
  const starting = Promise.resolve().then(() => void startingTurns.delete(claim.request_id));
  startingTurns.set(claim.request_id, starting);
  const start = jest.fn<() => Promise<StartedRun>>();
  const joined = await startOnce(context, { account_id: 'acct_1', session_id, claim }, start);
  expect([joined.turn, start.mock.calls.length]).toEqual([1, 0]);
});
