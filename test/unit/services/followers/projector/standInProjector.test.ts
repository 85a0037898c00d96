import { expect, test } from '@jest/globals';
import { startStandInProjector } from '../../../../../services/followers/projector/standInProjector.ts';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import { eventually } from '../../../../support/processes/operator.ts';

test('a process stands by only while projectors of another release are at work, and a database that is away changes nothing', async () => {
  const happened: string[] = [];
  let looks = 0;
  let needed = (): Promise<boolean> => Promise.resolve(false);
  const standIn = startStandInProjector({
    needed() {
      looks += 1;
      return needed();
    },
    start() {
      happened.push('stands by');
      return { close: async () => void happened.push('gives way') };
    },
    logger: createLogger('silent'),
  });
  async function whenLookedAt(answer: () => Promise<boolean>): Promise<string[]> {
    needed = answer;
    // The look that is at work may have asked before.
    const until = looks + 2;
    await eventually(
      async () => looks,
      (count) => count >= until,
    );
    return happened;
  }

  expect(await whenLookedAt(async () => false)).toEqual([]);
  expect(await whenLookedAt(async () => true)).toEqual(['stands by']);
  const away = () => Promise.reject<boolean>(storeUnavailableError('The database is away.'));
  expect(await whenLookedAt(away)).toEqual(['stands by']);
  expect(await whenLookedAt(async () => false)).toEqual(['stands by', 'gives way']);
  expect(await whenLookedAt(async () => true)).toEqual(['stands by', 'gives way', 'stands by']);
  await standIn.close();
  expect(happened).toEqual(['stands by', 'gives way', 'stands by', 'gives way']);
}, 60_000);
