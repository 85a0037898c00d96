import { retry } from '../../shared/lib/time/backoff.ts';
import { isProtocolError, mayPass } from './errors.ts';

const TRIES = 5;
const PAUSES = { firstMs: 20, longestMs: 320 };

/** A transaction that is being ended is waited for elsewhere, with shorter pauses. */
export const isBusy = (error: unknown): boolean =>
  isProtocolError(error, 'CONCURRENT_TRANSACTIONS');

/** Makes a request that may be repeated, a few times while that may help. */
export const persist = <Result>(request: () => Promise<Result>): Promise<Result> =>
  retry(request, {
    pauses: PAUSES,
    again: (error, failures) => failures < TRIES && mayPass(error) && !isBusy(error),
  });
