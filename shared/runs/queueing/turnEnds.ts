import { sessionErasedError } from '../../erasure/errors.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';

/** How a turn ended, as far as it matters to who waits for that. */
export type TurnEnd = 'ended' | 'cancelled' | 'erased';

/** What a run answers whose turn was ended by somebody else. */
export function endedByOthers(end: TurnEnd, cause?: unknown): TurnlogError {
  switch (end) {
    case 'erased':
      return sessionErasedError(cause);
    case 'cancelled':
      // Without a time to wait: a client that heeds it would run again what was to be stopped.
      return new TurnlogError('turn_interrupted', 'The turn was cancelled.', { cause });
    case 'ended':
      return new TurnlogError(
        'turn_interrupted',
        'The turn was interrupted before its end could be recorded. Try again.',
        { retriable: true, retryAfterSeconds: 1, cause },
      );
    default:
      return end satisfies never;
  }
}

/** What an event of a session says of a turn's end, or of a later turn. */
interface Sign {
  /** No turn up to this one is open after it. */
  turn: number;
  end: TurnEnd;
}

/** As much as is read of the data of an event; whoever can write the log may have put in anything. */
interface Said {
  turn?: unknown;
  reason?: unknown;
}

/** What a stored event of a session says of the turns before it; undefined where it ends none. */
export function signOf({ type, data }: Pick<StoredEvent, 'type' | 'data'>): Sign | undefined {
  if (type === 'session.erased.v1') return { turn: Infinity, end: 'erased' };
  const isEnd = /^session\.turn_(completed|failed|interrupted)\./.test(type);
  if (!isEnd && !type.startsWith('session.turn_started.')) return undefined;
  try {
    const { turn, reason } = JSON.parse(data) as Said;
    if (typeof turn !== 'number') return undefined;
    return isEnd
      ? { turn, end: reason === 'cancelled' ? 'cancelled' : 'ended' }
      : { turn: turn - 1, end: 'ended' };
  } catch {
    return undefined;
  }
}
