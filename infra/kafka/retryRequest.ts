import { retry } from '../../shared/lib/time/backoff.ts';
import { isProtocolError, isTransient } from './errors.ts';

const MAX_ATTEMPTS = 5;
const PAUSES = { firstMs: 20, longestMs: 320 };

/** Returns true while the previous transaction is being ended; callers wait for that with shorter pauses. */
export const isTransactionPending = (error: unknown): boolean =>
  isProtocolError(error, 'CONCURRENT_TRANSACTIONS');

/** Makes an idempotent request, with a few retries after transient failures. */
export const retryRequest = <Result>(request: () => Promise<Result>): Promise<Result> =>
  retry(request, {
    pauses: PAUSES,
    shouldRetry: (error, failures) =>
      failures < MAX_ATTEMPTS && isTransient(error) && !isTransactionPending(error),
  });
