import { expect, jest, test } from '@jest/globals';
import { storeUnavailableError } from '../../../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../../../shared/lib/logger.ts';
import { retryUntilStoreAvailable } from '../../../../../services/process/startup/retryUntilStoreAvailable.ts';

test.each([
  ['The disk is full', 'The store is away.', 'The store is away. (The disk is full)'],
  ['The disk is full.', 'The store is away. The disk is full.', undefined],
])('logs the cause %j once', async (cause, message, reason = message) => {
  const warn = jest.fn();
  const work = jest
    .fn<() => Promise<string>>()
    .mockRejectedValueOnce(storeUnavailableError(message, new Error(cause)))
    .mockResolvedValue('done');
  const { signal } = new AbortController();
  const logger = { warn } as unknown as Logger;
  expect(await retryUntilStoreAvailable(work, logger, signal)).toBe('done');
  expect(warn.mock.calls).toEqual([[{ reason }, expect.any(String)]]);
});
