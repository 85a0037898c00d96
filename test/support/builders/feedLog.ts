import { randomUUID } from 'node:crypto';
import type { DomainEvent } from '../../../shared/eventlog/eventTypes.ts';
import { appendEvents, NO_STREAM, type StreamHead } from '../../../shared/eventlog/append.ts';
import type { ProtectedStore } from '../../../shared/eventlog/encryption/protectedStore.ts';
import { commitEventTexts } from '../../../shared/eventlog/encryption/sealTexts.ts';
import type { AccountFeed, FeedItem, FeedStart } from '../../../shared/feed/accountFeed.ts';
import { turnStarted } from './events.ts';
import { unlimitedFeedMemory } from './memory.ts';

/** Writes events of accounts to a log, with their texts closed, as commands do. */
export function feedWriter(store: ProtectedStore) {
  const heads = new Map<string, StreamHead>();

  /** Appends to a stream in one go. Resolves with the ids. */
  async function write(
    account_id: string,
    stream: string,
    events: readonly DomainEvent[],
  ): Promise<string[]> {
    const head = heads.get(stream) ?? NO_STREAM;
    const named = events.map((event) => ({ id: randomUUID(), ...event }));
    const { events: sealed, key } = await commitEventTexts(store.keys, head.key, named);
    const { head: after } = await appendEvents(
      store,
      { stream, head },
      {
        events: sealed,
        authorship: {
          account_id,
          key_id: 'key_1',
          request_id: 'request',
          causation_id: 'request',
          recorded_at: '2026-01-01T00:00:00.000Z',
        },
      },
    );
    heads.set(stream, { ...after, key });
    return named.map(({ id }) => id);
  }

  return {
    write,
    /** So many turns of the account's session, in one append. */
    turns: (account: string, count: number, input = 'hello'): Promise<string[]> =>
      write(
        account,
        `session-session_of_${account}`,
        Array.from({ length: count }, (_, turn) => turnStarted(turn + 1, { input })),
      ),
  };
}

/** Follows until so many events have come, or to the end of the log where none are asked for. */
export async function taken(
  feed: AccountFeed,
  account: string,
  { from, count = Infinity }: { from: FeedStart; count?: number },
): Promise<{ items: FeedItem[]; cursor: string | undefined }> {
  const items: FeedItem[] = [];
  let cursor: string | undefined;
  const options = { from, memory: unlimitedFeedMemory, signal: new AbortController().signal };
  if (count <= 0) return { items, cursor };
  for await (const page of feed.followAccount(account, options)) {
    for (const item of page.items) {
      items.push(item);
      if (items.length === count) return { items, cursor: item.cursor };
    }
    ({ cursor } = page);
    if (page.caughtUp && count === Infinity) break;
  }
  return { items, cursor };
}

export const idsOf = (items: readonly FeedItem[]): string[] => items.map(({ event }) => event.id);
