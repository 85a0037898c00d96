import { retry } from '../../shared/lib/time/backoff.ts';
import { isProtocolError, isTransient } from './errors.ts';

const MAX_ATTEMPTS = 5;
const PAUSES = { firstMs: 20, longestMs: 320 };

/** A transaction that is being ended is waited for elsewhere, with shorter pauses. */
export const isTransactionPending = (error: unknown): boolean =>
  isProtocolError(error, 'CONCURRENT_TRANSACTIONS');

/** Makes a request that may be repeated, a few times while that may help. */
export const retryRequest = <Result>(request: () => Promise<Result>): Promise<Result> =>
  retry(request, {
    pauses: PAUSES,
    shouldRetry: (error, failures) =>
      failures < MAX_ATTEMPTS && isTransient(error) && !isTransactionPending(error),
  });
