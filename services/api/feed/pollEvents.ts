import type { AccountFeed, FollowOptions } from '../../../shared/feed/accountFeed.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { formatFeedItem } from './streamEvents.ts';

interface PollOptions extends FollowOptions {
  accountId: string;
  source: string;
  /** The most events. */
  limit: number;
  /** How long the first event is waited for, where there is none yet. */
  waitMs: number;
}

/**
 * A page of an account's events, one a line, and the cursor behind it. It ends at so many events, at
 * so many bytes, and at the end of the log; without any event only when the wait is over. Where the
 * log is long, and little of it the account's, it ends when it was looked through for so long, too.
 * Errors: those of followAccount.
 */
export async function pollEvents(
  { followAccount }: AccountFeed,
  { accountId, source, limit, waitMs, ...options }: PollOptions,
): Promise<{ text: string; cursor: string | undefined }> {
  const waited = new AbortController();
  const signal = AbortSignal.any([options.signal, waited.signal]);
  const began = performance.now();
  let timer: NodeJS.Timeout | undefined;
  const lines: string[] = [];
  let bytes = 0;
  let behind: string | undefined;
  try {
    for await (const page of followAccount(accountId, { ...options, signal })) {
      for (const item of page.items) {
        if (lines.length > 0 && (lines.length >= limit || bytes >= LIMITS.feed.answerBytes))
          return { text: lines.join(''), cursor: behind };
        const line = `${formatFeedItem(item, source)}\n`;
        lines.push(line);
        bytes += Buffer.byteLength(line);
        behind = item.cursor;
      }
      behind = page.cursor;
      const isFull = lines.length >= limit || bytes >= LIMITS.feed.answerBytes;
      const tookMs = performance.now() - began;
      const leftMs = waitMs - tookMs;
      const isLooked = page.items.length === 0 && page.caughtUp;
      const isLate = tookMs >= Math.max(waitMs, LIMITS.feed.progressMs);
      if (isFull || isLate || (isLooked && (lines.length > 0 || leftMs <= 0))) break;
      if (isLooked) timer ??= setTimeout(() => waited.abort(), leftMs);
    }
    return { text: lines.join(''), cursor: behind };
  } finally {
    clearTimeout(timer);
  }
}
