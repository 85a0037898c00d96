import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import {
  createCheckpoint,
  readLogIdentity,
  type IdentifiableLog,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import type { AccountFeed, FeedItem } from '../../../shared/feed/accountFeed.ts';
import { cursorOf } from '../../../shared/feed/cursor.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';

/** The position reached in the log, and the event to deliver there, if any. */
export type FollowedItem = Pick<FeedItem, 'cursor'> & Partial<FeedItem>;

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
  return identity && event && cursorOf(createCheckpoint(identity, event));
}

/** Follows accounts through their feed. */
export const followFeed = (
  feed: Pick<AccountFeed, 'followAccount'>,
  log: IdentifiableLog,
): FollowAccount =>
  async function* follow({ accountId, cursor, position, types, signal }) {
    const options = { types: types ? new Set(types) : undefined, signal };
    const after = cursor ?? (await cursorAt(log, position));
    const from = after === undefined ? 'start' : ({ after } as const);
    for await (const page of feed.followAccount(accountId, { from, ...options })) {
      yield* page.items;
      if (page.cursor !== undefined) yield { cursor: page.cursor };
    }
  };

/** Returns true when the log was declared restored and no longer contains the committed cursor. */
export const isCursorLost = (error: unknown): boolean => isTurnlogError(error, 'position_unknown');
