import { afterEach, expect, jest, test } from '@jest/globals';
import { reportFailure } from '../../../../services/process/processExit.ts';
import { Rejection } from '../../../../shared/domain/rejection.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

const exitCode = process.exitCode;
afterEach(() => {
  process.exitCode = exitCode;
  jest.restoreAllMocks();
});

function reported(error: unknown): string {
  const write = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  reportFailure(error);
  return write.mock.calls.map(([text]) => String(text)).join('');
}

test('a failure and what then failed to close are both told, as the sentences that they are', async () => {
  async function start(): Promise<void> {
    await using opened = new AsyncDisposableStack();
    opened.defer(() => {
      throw new TurnlogError('store_unavailable', 'The store can’t be closed.');
    });
    throw new TurnlogError('configuration_invalid', 'The models file is not JSON.');
  }
  const failure: unknown = await start().catch((error: unknown) => error);
  expect(reported(failure)).toBe('The models file is not JSON.\nThe store can’t be closed.\n');
});

test('a rejection is a sentence too', () => {
  const rejection = new Rejection('account_missing', 'There is no such account.');
  expect(reported(rejection)).toBe('There is no such account.\n');
});
