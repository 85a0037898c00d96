import { expect, test } from '@jest/globals';
import { startRolloutProjector } from '../../../../../services/followers/projector/rolloutProjector.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

test('a process stands by only while projectors of another release are active, and an unavailable database changes nothing', async () => {
  const happened: string[] = [];
  let polls = 0;
  let needed = (): Promise<boolean> => Promise.resolve(false);
  const rollout = startRolloutProjector({
    isNeeded() {
      polls += 1;
      return needed();
    },
    start() {
      happened.push('stands by');
      return { close: async () => void happened.push('gives way') };
    },
    logger: createLogger('silent'),
  });
  async function whenPolled(answer: () => Promise<boolean>): Promise<string[]> {
    needed = answer;
    // The current poll may have called the earlier function.
    const until = polls + 2;
    await eventually(
      async () => polls,
      (count) => count >= until,
    );
    return happened;
  }

  expect(await whenPolled(async () => false)).toEqual([]);
  expect(await whenPolled(async () => true)).toEqual(['stands by']);
  const away = () => Promise.reject<boolean>(storeUnavailableError('The database is away.'));
  expect(await whenPolled(away)).toEqual(['stands by']);
  expect(await whenPolled(async () => false)).toEqual(['stands by', 'gives way']);
  expect(await whenPolled(async () => true)).toEqual(['stands by', 'gives way', 'stands by']);
  await rollout.close();
  expect(happened).toEqual(['stands by', 'gives way', 'stands by', 'gives way']);
}, 60_000);
