import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import { createUnfinishedMessages, type UnfinishedMessage } from './unfinishedMessages.ts';

/** The data that a server has sent, measured against the limits. */
export interface Inflow {
  /** Counts bytes. Returns false once the server has sent too much of anything. */
  bytes(count: number): boolean;
  /** Counts a message. Returns false like `bytes`. */
  message(): boolean;
  /** Counts a line that is not a message. */
  strayLine(): void;
  /** Counts a log message that is discarded. */
  discardedLog(): void;
  /** Limits the bytes that arrive during a listing. Returns a function that ends the limit. */
  startListing(): () => void;
  /** Holds the memory of a response's message until it ends. All servers share the memory. */
  holdUnfinished(): UnfinishedMessage;
  /** Ends the connection because of a single message. */
  exceed(reason: string): void;
  discardedLogs(): number;
}

/** Pieces of data are counted as this long at least: each one costs time. */
const LEAST_BYTES = 512;

/** A token bucket: takes tokens, and returns false when there are not enough. */
function createBucket(perSecond: number): (count: number) => boolean {
  const most = perSecond * RUN_LIMITS.mcp.burstSeconds;
  let remaining = most;
  let filled = performance.now();
  return (count) => {
    const now = performance.now();
    remaining = Math.min(most, remaining + ((now - filled) * perSecond) / 1_000) - count;
    filled = now;
    return remaining >= 0;
  };
}

/** The messages of this thread that have not ended. */
const holdMessage = createUnfinishedMessages(RUN_LIMITS.mcp.unfinishedBytes);
let connections = 0;

/** Measures what a server sends. The first excess is reported once, with the reason. */
export function createInflow(onExcess: (reason: string) => void): Inflow {
  const { bytesPerSecond, messagesPerSecond, strayLinesPerSecond } = RUN_LIMITS.mcp;
  const bytes = createBucket(bytesPerSecond);
  const messages = createBucket(messagesPerSecond);
  const strayLines = createBucket(strayLinesPerSecond);
  const connection = String((connections += 1));
  let hasExceeded = false;
  let discardedLogs = 0;
  /** The bytes that the pages of a list may still have, which are kept until the last one. */
  let listingBytes = Infinity;

  function exceed(reason: string): void {
    if (hasExceeded) return;
    hasExceeded = true;
    onExcess(reason);
  }
  function check(fits: boolean, reason: string): boolean {
    if (!fits) exceed(reason);
    return !hasExceeded;
  }
  return {
    bytes(count) {
      listingBytes -= count;
      if (listingBytes < 0) exceed('its list of tools is too long');
      return check(bytes(Math.max(count, LEAST_BYTES)), 'it sends too many bytes');
    },
    message: () => check(messages(1), 'it sends too many messages'),
    strayLine: () => void check(strayLines(1), 'it sends too much that is not a message'),
    discardedLog: () => void (discardedLogs += 1),
    startListing() {
      listingBytes = RUN_LIMITS.mcp.listingBytes;
      return () => void (listingBytes = Infinity);
    },
    holdUnfinished: () => holdMessage(connection),
    exceed,
    discardedLogs: () => discardedLogs,
  };
}
