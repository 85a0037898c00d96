import { TurnlogError } from './errors.ts';
import type { Full } from './places.ts';

/** How long whoever was refused is to wait, in seconds: runs take about as long. */
const RETRY = { retriable: true, retryAfterSeconds: 5 };

/** The error of who finds no room, or has waited for it for too long. */
export const noRoom = (full: Full): TurnlogError =>
  full === 'account'
    ? new TurnlogError(
        'rate_limited',
        'The account has as many runs in flight and waiting as it may. Try again when some have ended.',
        RETRY,
      )
    : new TurnlogError(
        'overloaded',
        'The service has as much to do as it can hold. Try again in a moment.',
        RETRY,
      );
