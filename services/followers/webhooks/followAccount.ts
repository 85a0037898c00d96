import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import {
  createCheckpoint,
  readLogIdentity,
  type IdentifiableLog,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import type { AccountFeed, FeedItem, FeedPage } from '../../../shared/feed/accountFeed.ts';
import { formatCursor } from '../../../shared/feed/cursor.ts';
import type { FeedMemory } from '../../../shared/feed/pageMemory.ts';
import type { MemoryLedger } from '../../../shared/lib/memory/ledger.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';

/** The position reached in the log, and the event to deliver there, if any. */
export type FollowedItem = Pick<FeedItem, 'cursor'> &
  Partial<FeedItem> & {
    /** The `retain` of the event's page. */
    retain?: FeedPage['retain'];
  };

/** The largest delay of a timer. The wait for memory ends only with memory or with the signal. */
const WAIT_MS = 2 ** 31 - 1;

const memoryFor = (
  memory: Pick<MemoryLedger, 'tryReserve' | 'reserve'>,
  account_id: string,
): FeedMemory => ({
  tryReserve: (bytes) => memory.tryReserve({ account_id, purpose: 'webhooks', bytes }),
  reserve: (bytes, signal) =>
    memory.reserve({ account_id, purpose: 'webhooks', bytes }, { waitMs: WAIT_MS, signal }),
});

interface FollowAccountOptions {
  accountId: string;
  /** The committed cursor. Undefined starts after `position`. */
  cursor: string | undefined;
  /** Position of the event that created the webhook. */
  position: Position;
  types: readonly string[] | null;
  /** Ends the iteration without an error. */
  signal: AbortSignal;
}

/** Yields the events for a webhook: existing events first, then live ones. */
export type FollowAccount = (options: FollowAccountOptions) => AsyncIterable<FollowedItem>;

async function cursorAt(log: IdentifiableLog, position: Position): Promise<string | undefined> {
  const [identity, event] = [await readLogIdentity(log), await log.eventAt(position)];
  return identity && event && formatCursor(createCheckpoint(identity, event));
}

/** Follows accounts through their feed, with memory from the ledger. */
export const followFeed = (
  feed: Pick<AccountFeed, 'followAccount'>,
  log: IdentifiableLog,
  ledger: Pick<MemoryLedger, 'tryReserve' | 'reserve'>,
): FollowAccount =>
  async function* follow({ accountId, cursor, position, types, signal }) {
    const memory = memoryFor(ledger, accountId);
    const options = { types: types ? new Set(types) : undefined, memory, signal };
    const after = cursor ?? (await cursorAt(log, position));
    const from = after === undefined ? 'start' : ({ after } as const);
    for await (const { items, cursor: reached, retain } of feed.followAccount(accountId, {
      from,
      ...options,
    })) {
      // Without a variable for the item, which a suspended generator would keep in memory.
      for (let index = 0; index < items.length; index += 1) yield { ...items[index]!, retain };
      if (reached !== undefined) yield { cursor: reached };
    }
  };

/** Returns true when the log was declared restored and no longer contains the committed cursor. */
export const isCursorLost = (error: unknown): boolean => isTurnlogError(error, 'position_unknown');
