import type { RecordedEvent } from '../../eventlog/event.ts';
import { discloseEvents } from '../../eventlog/encryption/openTexts.ts';
import type { ProtectedStore } from '../../eventlog/encryption/protectedStore.ts';
import { SLICE_BYTES, yieldForText } from '../../lib/concurrency/yieldToEventLoop.ts';
import { totalBytesOf } from '../../ports/eventStore.ts';

/** Small, because objects that survive two minor collections remain until a major one. */
const PAGE_EVENTS = 100;

/**
 * Reads the events of a stream up to a revision, oldest first, with every text that is not erased.
 * Holds one page in memory. Throws `key_missing`, or the abort reason.
 */
export async function* readDisclosed(
  store: Pick<ProtectedStore, 'readStream' | 'keys'>,
  stream: string,
  last: number,
  signal: AbortSignal,
): AsyncGenerator<RecordedEvent> {
  for (let from = 0; from <= last;) {
    signal.throwIfAborted();
    const stored = await store.readStream(stream, {
      direction: 'forwards',
      from,
      limit: Math.min(PAGE_EVENTS, last + 1 - from),
      maxBytes: SLICE_BYTES,
    });
    if (stored.length === 0) return;
    const events = await discloseEvents(store.keys, stored);
    await yieldForText(events[0]!.metadata.account_id, totalBytesOf(stored));
    yield* events;
    from += stored.length;
  }
}
