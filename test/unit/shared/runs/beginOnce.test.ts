import { beforeEach, expect, test } from '@jest/globals';
import { beginOnce, type BegunRun } from '../../../../shared/runs/beginOnce.ts';
import type { RunContext } from '../../../../shared/runs/context.ts';
import { TurnBegunBefore } from '../../../../shared/runs/findTurn.ts';
import { createPermitPool } from '../../../../shared/lib/concurrency/capacity.ts';

const session_id = 'session_1';
const claim = { request_id: 'request', reserved: {}, first: true };
const never = new Promise<never>(() => undefined);
const found = { session_id, turn: 1, owner: 'x', revision: 1, position: '1', context: undefined };

let context: RunContext;
let replayed: number;
beforeEach(() => {
  replayed = 0;
  context = {
    limits: { waitMs: 200 },
    onReplayed: () => (replayed += 1),
    sessions: {
      beginning: new Map(),
      ending: new Map([[`${session_id} 1`, never]]),
      // One place of each account.
      waits: createPermitPool({ permits: 2, bytes: Infinity }),
    },
  } as unknown as RunContext;
});

const begin = (account_id = 'acct_1'): Promise<BegunRun> =>
  beginOnce(context, { account_id, session_id, claim }, async () => {
    throw new TurnBegunBefore(found as TurnBegunBefore['found']);
  });

test('those who wait until another try has begun its turn take a place each', async () => {
  context.sessions.beginning.set(claim.request_id, never);
  const first = begin();
  await expect(begin()).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(first).rejects.toMatchObject({ code: 'idempotency_in_progress' });
  await expect(begin()).rejects.toMatchObject({ code: 'idempotency_in_progress' });
  expect([context.sessions.waits.activeCount(), replayed]).toEqual([0, 0]);
});

test('and so do those who wait for its end, which is no answer yet', async () => {
  const [one, other] = [await begin(), await begin()];
  const waiting = one.endedWithin!(200);
  await expect(other.endedWithin!(200)).rejects.toMatchObject({ code: 'rate_limited' });
  await expect(waiting).rejects.toMatchObject({ code: 'idempotency_in_progress' });
  expect([context.sessions.waits.activeCount(), replayed]).toEqual([0, 0]);
});
