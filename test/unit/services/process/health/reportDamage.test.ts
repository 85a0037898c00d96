import { expect, jest, test } from '@jest/globals';
import { createDamageReporter } from '../../../../../services/process/health/reportDamage.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';

test('no more than a hundred damaged streams are named in a minute, and that there are more is said once', () => {
  const logger = createLogger('silent');
  const warn = jest.spyOn(logger, 'warn').mockReturnValue(undefined);
  let now = 0;
  const damaged = createDamageReporter(logger, () => now);
  const find = (from: number, to: number): void => {
    for (let index = from; index < to; index += 1) {
      const stream = `session-${index}`;
      damaged.record({
        stream,
        reason: 'x',
        revision: 0,
        first_revision: null,
        last_revision: null,
      });
    }
  };
  find(0, 20_000);
  expect(warn).toHaveBeenCalledTimes(101);
  now = 60_000;
  find(20_000, 20_001);
  expect(warn).toHaveBeenCalledTimes(102);
});
