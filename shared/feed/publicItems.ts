import { isTurnlogError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { ReadingKeys } from '../eventlog/encryption/keyring.ts';
import { decryptTextsInData, type ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import { yieldToEventLoop } from '../lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../limits.ts';
import type { PublicEvent } from '../publicEvents/publicEvent.ts';
import { toPublicEvents } from '../publicEvents/toPublicEvents.ts';
import { formatCursor } from './cursor.ts';
import type { LoggedEvent } from './loggedEvents.ts';

/** An event of an account as consumers see it. */
export interface FeedItem {
  event: PublicEvent;
  /** Resumes after this event. */
  cursor: string;
  /** The stream whose key decrypted texts of the event; absent for an event that shows none. */
  textStream?: string;
}

interface Opened {
  items: FeedItem[];
  /** Why the next event can't be shown. */
  failure: Error | undefined;
}

/** Describes the error to clients. An event that stops the relay stops only this account's feed. */
function explained(error: unknown, { id, stream, revision }: ReadableEvent): Error {
  const description = `the event ${id} (${stream} revision ${revision})`;
  if (isTurnlogError(error, 'configuration_invalid'))
    return new TurnlogError(
      'release_too_old',
      `This replica does not know the type of ${description}: a newer release has written it.`,
      { retriable: true, retryAfterSeconds: 1, cause: error },
    );
  if (isTurnlogError(error, 'event_invalid'))
    return new TurnlogError(
      'stream_damaged',
      `Nothing is shown beyond ${description}, which can't be understood; an operator has to look at it.`,
      { cause: error },
    );
  return error as Error;
}

async function opened(
  keys: ReadingKeys,
  events: readonly LoggedEvent[],
  { accountId, types }: { accountId: string; types: ReadonlySet<string> | undefined },
): Promise<Opened> {
  const stored = events.map((event) => event.stored);
  const readable = await decryptTextsInData(keys, stored, { accountId });
  const items: FeedItem[] = [];
  for (const [index, event] of readable.entries()) {
    try {
      for (const shown of toPublicEvents([event]))
        if (!types || types.has(shown.type))
          items.push({
            event: shown,
            cursor: formatCursor(events[index]!.checkpoint),
            ...(event.key && { textStream: event.stream }),
          });
    } catch (error) {
      return { items, failure: explained(error, event) };
    }
  }
  return { items, failure: undefined };
}

/**
 * Yields the public views of an account's events in small batches, filtered by type. Throws
 * `store_unavailable`, or for an event that can't be shown `key_missing`, `stream_damaged` or
 * `release_too_old`, after all events before it.
 */
export async function* publicItems(
  keys: ReadingKeys,
  events: readonly LoggedEvent[],
  { accountId, types }: { accountId: string; types: ReadonlySet<string> | undefined },
): AsyncGenerator<{ items: FeedItem[]; cursor: string }> {
  for (let from = 0; from < events.length; from += LIMITS.feed.openedEvents) {
    const batch = events.slice(from, from + LIMITS.feed.openedEvents);
    await yieldToEventLoop(accountId);
    const { items, failure } = await opened(keys, batch, { accountId, types });
    const last = failure ? items.at(-1)?.cursor : formatCursor(batch.at(-1)!.checkpoint);
    if (last !== undefined) yield { items, cursor: last };
    if (failure) throw failure;
  }
}
