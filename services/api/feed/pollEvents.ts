import type { AccountFeed, FollowOptions } from '../../../shared/feed/accountFeed.ts';
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

/**
 * A page of an account's events, one per line, and the cursor after it. It ends at the limit of events
 * or bytes, or at the end of the log, where an empty page waits first. A long search for the
 * account's events ends it, too.
 */
export async function pollEvents(
  { followAccount }: AccountFeed,
  { accountId, source, limit, waitMs, ...options }: PollOptions,
): Promise<{ text: string; cursor: string | undefined }> {
  const waitEnded = new AbortController();
  const signal = AbortSignal.any([options.signal, waitEnded.signal]);
  const startedAt = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const lines: string[] = [];
  let bytes = 0;
  let cursor: string | undefined;
  try {
    for await (const page of followAccount(accountId, { ...options, signal })) {
      for (const item of page.items) {
        if (lines.length > 0 && (lines.length >= limit || bytes >= LIMITS.feed.answerBytes))
          return { text: lines.join(''), cursor };
        const line = `${formatFeedItem(item, source)}\n`;
        lines.push(line);
        bytes += Buffer.byteLength(line);
        cursor = item.cursor;
      }
      cursor = page.cursor;
      const isFull = lines.length >= limit || bytes >= LIMITS.feed.answerBytes;
      const tookMs = performance.now() - startedAt;
      const remainingMs = waitMs - tookMs;
      const isAtEnd = page.items.length === 0 && page.caughtUp;
      const isLate = tookMs >= Math.max(waitMs, LIMITS.feed.progressMs);
      if (isFull || isLate || (isAtEnd && (lines.length > 0 || remainingMs <= 0))) break;
      if (isAtEnd) timer ??= setTimeout(() => waitEnded.abort(), remainingMs);
    }
    return { text: lines.join(''), cursor };
  } finally {
    clearTimeout(timer);
  }
}
