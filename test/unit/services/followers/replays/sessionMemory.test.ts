import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { ReplayRunContext } from '../../../../../services/followers/replays/replayContext.ts';
import { replayTurnUntilEnded } from '../../../../../services/followers/replays/replayTurn.ts';
import {
  SessionPostponed,
  withSessionMemory,
  type SessionMemory,
} from '../../../../../services/followers/replays/sessionMemory.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { memoryFor } from '../../../../support/builders/memory.ts';

/** Two accounts with several sessions leave nothing to a third one. */
const ledger = () => memoryFor('replays', 4 * LIMITS.replays.sessionBytes);

async function postpone(): Promise<void> {
  throw new SessionPostponed();
}

test.each<[string, (sessionMemory: SessionMemory) => Promise<void>]>([
  ['between two turns', (sessionMemory) => sessionMemory.yieldToWaiters()],
  ['while a turn can not begin', postpone],
])(
  'sessions leave their memory to an account that has none %s, and go on later',
  async (_, leave) => {
    const memory = ledger();
    const signal = AbortSignal.timeout(4_000);
    const served = new AbortController();
    const sessions = ['a', 'a', 'b'].map((account_id) =>
      withSessionMemory(memory, { account_id, signal }, async (sessionMemory) => {
        while (!served.signal.aborted) {
          if (sessionMemory.isWanted()) await leave(sessionMemory);
          await setImmediate(undefined, { signal });
        }
      }),
    );
    await setImmediate();
    expect(memory.usage('replays').reservations).toBe(3);
    await withSessionMemory(memory, { account_id: 'c', signal }, async () => undefined);
    served.abort();
    await Promise.all(sessions);
    expect(memory.usage('replays')).toMatchObject({ used: 0, reservations: 0 });
  },
);

test('a turn that can not begin now is postponed once others wait for memory', async () => {
  const memory = ledger();
  const stop = new AbortController();
  const waiting = ['a', 'a', 'a'].map((account_id) =>
    withSessionMemory(
      memory,
      { account_id, signal: stop.signal },
      () => new Promise(() => undefined),
    ),
  );
  const overloaded = async () => {
    throw new TurnlogError('model_overloaded', 'Later.', { retriable: true });
  };
  const replaying = {
    context: { memory, logger: { debug: () => undefined } },
    attempts: { countDeaths: overloaded },
  };
  const turns = { lastTry: async () => undefined };
  const begun = replayTurnUntilEnded(
    replaying as unknown as ReplayRunContext,
    { actor: {}, turns, recorded: 1 } as unknown as Parameters<typeof replayTurnUntilEnded>[1],
    overloaded,
    AbortSignal.timeout(4_000),
  );
  await expect(begun).rejects.toThrow(SessionPostponed);
  stop.abort(new Error('the test has ended'));
  await expect(waiting[2]).rejects.toThrow('the test has ended');
});
