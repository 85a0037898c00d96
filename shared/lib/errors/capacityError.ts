import { TurnlogError } from './turnlogError.ts';

/** How long whoever was refused is to wait. */
const RETRY = { retriable: true, retryAfterSeconds: 2 };

/** The error of who finds no room, or has waited for it for too long: whose room is taken up. */
export const capacityError = (full: 'process' | 'account' | undefined): TurnlogError =>
  full === 'account'
    ? new TurnlogError(
        'rate_limited',
        'The account has as much in progress as it may. Try again when some of it has ended.',
        RETRY,
      )
    : new TurnlogError(
        'overloaded',
        'The service has as much to do as it can hold. Try again in a moment.',
        RETRY,
      );
