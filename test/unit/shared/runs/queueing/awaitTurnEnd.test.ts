import { expect, test } from '@jest/globals';
import { awaitTurnEnd } from '../../../../../shared/runs/queueing/awaitTurnEnd.ts';
import type { RunState } from '../../../../../shared/runs/context.ts';
import { createPermitPool } from '../../../../../shared/lib/concurrency/capacity.ts';

/** Says of every turn at once that it has ended. */
const context = {
  turnWatch: {
    subscribe({ onEnd }: { onEnd: (end: 'ended') => void }) {
      setImmediate(onEnd, 'ended');
      return () => undefined;
    },
  },
  turnWaits: createPermitPool('test', { permits: 10, bytes: Infinity }),
} as unknown as Pick<RunState, 'turnWatch' | 'turnWaits'>;

/** Waits so long for a turn that ends with the look of that number; how often it was looked at. */
async function looksIn(waitMs: number, last = Infinity) {
  let looks = 0;
  const status = await awaitTurnEnd(context, {
    account_id: 'acct_1',
    waitMs,
    signal: new AbortController().signal,
    respond: async (remainingMs) => {
      looks += 1;
      if (looks >= last) return { response: 'completed' };
      if (remainingMs() === 0) return { response: 'running' };
      return { running: { session_id: 'session_1', turn: 1, revision: 1 } };
    },
  });
  return { looks, status };
}

test('a turn that is told to have ended, and does not show it, is not looked at without a pause', async () => {
  const { looks, status } = await looksIn(550);
  expect(status).toBe('running');
  expect(looks).toBeGreaterThan(1);
  expect(looks).toBeLessThan(10);
  expect(context.turnWaits.activeCount()).toBe(0);
});

test('its end is told once it shows', async () => {
  expect(await looksIn(60_000, 3)).toEqual({ looks: 3, status: 'completed' });
});
