import { TurnlogError } from './turnlogError.ts';

const RETRY = { retriable: true, retryAfterSeconds: 2 };

/**
 * The error for a request that finds no capacity, or waited too long for it, by whose capacity is
 * exhausted.
 */
export const capacityError = (exhausted: 'process' | 'account' | undefined): TurnlogError =>
  exhausted === 'account'
    ? new TurnlogError(
        'rate_limited',
        'The account has reached its limit of work in progress. Try again when some of it has completed.',
        RETRY,
      )
    : new TurnlogError('overloaded', 'The service is at capacity. Try again in a moment.', RETRY);
