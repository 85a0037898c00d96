import { setImmediate } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { ReplayRunContext } from '../../../../../services/followers/replays/replayContext.ts';
import { replayTurnUntilEnded } from '../../../../../services/followers/replays/replayTurn.ts';
import { TurnlogError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../../../shared/limits.ts';

const logger = { debug: () => undefined, warn: () => undefined };
const replaying = {
  context: { logger, memory: { hasWaiters: () => false } },
  semaphore: {},
} as unknown as ReplayRunContext;

/** Begins a turn whose earlier attempts ended in so many crashes; `run` stands for its next attempt. */
function replayAfter(crashes: number, run: () => Promise<void>) {
  const latest = { end: { type: 'session.turn_interrupted.v1', data: { reason: 'crash' } } };
  const earlierTry = crashes > 0 ? latest : undefined;
  const turns = { lastTry: async () => earlierTry, crashes: () => crashes };
  const toRun = { actor: {}, turns, recorded: 1, earlierTry };
  const next = async () => {
    await run();
    throw new TurnlogError('invalid_request', 'It ends here.');
  };
  return replayTurnUntilEnded(
    replaying,
    toRun as unknown as Parameters<typeof replayTurnUntilEnded>[1],
    next,
    AbortSignal.timeout(4_000),
  );
}

test('a turn is not run again once as many processes have died in it as a turn has attempts', async () => {
  const { tries } = LIMITS.replays;
  let runs = 0;
  const run = async () => void (runs += 1);
  await replayAfter(tries - 1, run);
  expect(runs).toBe(1);
  const turn = await replayAfter(tries, run);
  expect(runs).toBe(1);
  expect(turn.end).toMatchObject({ data: { reason: 'crash' } });
});

test('turns that were open in a crash are run one after another, beside the others', async () => {
  const open = Promise.withResolvers<void>();
  const begun: string[] = [];
  const begin = (name: string) => async () => {
    begun.push(name);
    await open.promise;
  };
  const turns = [
    replayAfter(1, begin('crashed')),
    replayAfter(2, begin('crashed too')),
    replayAfter(0, begin('other')).catch(() => undefined),
  ];
  await setImmediate();
  expect(begun).toEqual(['other', 'crashed']);
  open.resolve();
  await Promise.all(turns);
  expect(begun).toEqual(['other', 'crashed', 'crashed too']);
});
