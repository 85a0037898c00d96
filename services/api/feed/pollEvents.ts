import type { AccountFeed, FollowOptions } from '../../../shared/feed/accountFeed.ts';
import type { FeedMemory } from '../../../shared/feed/pageMemory.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { formatFeedItem } from './streamEvents.ts';

interface PollOptions extends FollowOptions {
  accountId: string;
  source: string;
  /** The maximum number of events. */
  limit: number;
  /** How long to wait for the first event where there is none yet. */
  waitMs: number;
}

/** Memory per byte of a line: as text of two bytes per character, joined, and as sent. */
const LINE_MEMORY = 5;

interface Poll {
  text: string;
  cursor: string | undefined;
  /** Releases the memory of the events. */
  release: () => void;
}

/**
 * A page of an account's events, one per line, and the cursor after it. It ends at the limit of events
 * or bytes, or at the end of the log, where an empty page waits first. A long search for the
 * account's events ends it, too, and a lack of memory for more of them: a page that holds memory does
 * not wait for more. Throws `rate_limited` or `overloaded` if there is none for the first events.
 */
export async function pollEvents(
  { followAccount }: AccountFeed,
  { accountId, source, limit, waitMs, memory, ...options }: PollOptions,
): Promise<Poll> {
  const ended = new AbortController();
  const signal = AbortSignal.any([options.signal, ended.signal]);
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const lines: string[] = [];
  const held: (() => void)[] = [];
  const release = (): void => held.forEach((releasePage) => releasePage());
  let bytes = 0;
  /** The first one is the position where the poll starts. */
  let pages = 0;
  let cursor: string | undefined;
  const isFull = (): boolean => lines.length >= limit || bytes >= LIMITS.feed.answerBytes;
  const result = (): Poll => ({ text: lines.join(''), cursor, release });
  const heldMemory: FeedMemory = {
    tryReserve: memory.tryReserve,
    async reserve(...request) {
      if (pages > 1 || lines.length > 0) ended.abort();
      signal.throwIfAborted();
      return memory.reserve(...request);
    },
  };
  try {
    const following = followAccount(accountId, { ...options, memory: heldMemory, signal });
    for await (const { items, caughtUp, retain, ...page } of following) {
      pages += 1;
      const before = bytes;
      for (const item of items) {
        if (lines.length > 0 && isFull()) {
          if (retain) held.push(retain());
          return result();
        }
        const line = `${formatFeedItem(item, source)}\n`;
        lines.push(line);
        bytes += Buffer.byteLength(line);
        cursor = item.cursor;
      }
      cursor = page.cursor;
      // With `types`, few lines may remain of a page: only they stay in memory.
      const linesBytes = LINE_MEMORY * (bytes - before);
      const permit = linesBytes > 0 ? memory.tryReserve(linesBytes) : undefined;
      if (permit) held.push(permit.release);
      else if (linesBytes > 0) {
        if (retain) held.push(retain());
        break;
      }
      const tookMs = performance.now() - startedAt;
      const remainingMs = waitMs - tookMs;
      const isAtEnd = items.length === 0 && caughtUp;
      const isLate = tookMs >= Math.max(waitMs, LIMITS.feed.progressMs);
      if (isFull() || isLate || (isAtEnd && (lines.length > 0 || remainingMs <= 0))) break;
      if (isAtEnd) timer ??= setTimeout(() => ended.abort(), remainingMs);
    }
    return result();
  } catch (error) {
    release();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}
