import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { Keyring } from '../eventlog/encryption/keyring.ts';
import { openTexts, type ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import { yieldToEventLoop } from '../lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../limits.ts';
import type { PublicEvent } from '../publicEvents/publicEvent.ts';
import { toPublicEvents } from '../publicEvents/toPublicEvents.ts';
import { cursorOf } from './cursor.ts';
import type { LoggedEvent } from './loggedEvents.ts';

/** An event of an account as consumers see it. */
export interface FeedItem {
  event: PublicEvent;
  /** Follows on behind it. */
  cursor: string;
}

interface Opened {
  items: FeedItem[];
  /** Why the event after them can't be shown. */
  failure: Error | undefined;
}

/** What stops the relay stops this one account, in words for its clients. */
function explained(error: unknown, { id, stream, revision }: ReadableEvent): Error {
  const place = `the event ${id} (${stream} revision ${revision})`;
  if (isTurnlogError(error, 'configuration_invalid'))
    return new TurnlogError(
      'release_too_old',
      `This replica does not know the type of ${place}: a newer release has written it.`,
      { retriable: true, retryAfterSeconds: 1, cause: error },
    );
  if (isTurnlogError(error, 'event_invalid'))
    return new TurnlogError(
      'stream_damaged',
      `Nothing is shown beyond ${place}, which can't be understood; an operator has to look at it.`,
      { cause: error },
    );
  return error as Error;
}

/** Errors: `store_unavailable` where the keys of texts can't be reached. */
async function opened(
  keys: Pick<Keyring, 'find'>,
  events: readonly LoggedEvent[],
  types: ReadonlySet<string> | undefined,
): Promise<Opened> {
  const readable = await openTexts(
    keys,
    events.map(({ stored }) => stored),
  );
  const items: FeedItem[] = [];
  for (const [index, event] of readable.entries()) {
    try {
      for (const shown of toPublicEvents([event]))
        if (!types || types.has(shown.type))
          items.push({ event: shown, cursor: cursorOf(events[index]!.checkpoint) });
    } catch (error) {
      return { items, failure: explained(error, event) };
    }
  }
  return { items, failure: undefined };
}

/**
 * The public views of an account's events, some at a time, without those that are not public or of
 * other types than asked for. Errors: `store_unavailable`, `key_missing`, `stream_damaged`,
 * `release_too_old` for an event past which nothing may be shown, after all before it.
 */
export async function* publicItems(
  keys: Pick<Keyring, 'find'>,
  events: readonly LoggedEvent[],
  { accountId, types }: { accountId: string; types: ReadonlySet<string> | undefined },
): AsyncGenerator<{ items: FeedItem[]; cursor: string }> {
  for (let from = 0; from < events.length; from += LIMITS.feed.openedEvents) {
    const piece = events.slice(from, from + LIMITS.feed.openedEvents);
    await yieldToEventLoop(accountId);
    const { items, failure } = await opened(keys, piece, types);
    const last = failure ? items.at(-1)?.cursor : cursorOf(piece.at(-1)!.checkpoint);
    if (last !== undefined) yield { items, cursor: last };
    if (failure) throw failure;
  }
}
