import { afterEach, expect, jest, test } from '@jest/globals';
import { limitStop, reportFailure } from '../../../../services/process/processExit.ts';
import { Rejection } from '../../../../shared/domain/rejection.ts';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

const exitCode = process.exitCode;
afterEach(() => {
  process.exitCode = exitCode;
  jest.useRealTimers();
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

test('a service that does not stop in time is ended, and its log says so', () => {
  jest.useFakeTimers();
  const exit = jest.spyOn(process, 'exit').mockReturnValue(undefined as never);
  const fatal = jest.fn();
  const stop = new AbortController();
  limitStop({ stop, logger: { fatal }, graceMs: 5_000 });
  jest.advanceTimersByTime(60_000);
  stop.abort();
  jest.advanceTimersByTime(19_999);
  expect(exit).not.toHaveBeenCalled();
  jest.advanceTimersByTime(1);
  expect(exit).toHaveBeenCalledWith(70);
  expect(fatal).toHaveBeenCalledWith({ limit_ms: 20_000 }, expect.stringContaining('in time'));
});
