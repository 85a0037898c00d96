import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import {
  checkpointOf,
  identityOf,
  type Identified,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import type { AccountFeed, FeedItem } from '../../../shared/feed/accountFeed.ts';
import { cursorOf } from '../../../shared/feed/cursor.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';

/** How far the log was followed, and the event that is to be sent, where there is one. */
export type Followed = Pick<FeedItem, 'cursor'> & Partial<FeedItem>;

export interface Following {
  accountId: string;
  /** The cursor of what was followed last; undefined for what comes after `position`. */
  cursor: string | undefined;
  /** Of the event that the webhook began with. */
  position: Position;
  types: readonly string[] | null;
  /** Ends it without an error. */
  signal: AbortSignal;
}

/**
 * What is to be sent to a webhook, first what is there, then live. Errors: those of AccountFeed.
 */
export type FollowAccount = (following: Following) => AsyncIterable<Followed>;

/** Errors: `log_changed` where no event begins there, `store_unavailable`. */
async function cursorAt(log: Identified, position: Position): Promise<string | undefined> {
  const [identity, event] = [await identityOf(log), await log.eventAt(position)];
  return identity && event && cursorOf(checkpointOf(identity, event));
}

/**
 * Follows accounts by their feed. A cursor that a restored log does not know is no cursor: all since
 * the webhook's creation comes again.
 */
export const followFeed = (
  feed: Pick<AccountFeed, 'followAccount'>,
  log: Identified,
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

/** Somebody has declared that the log was restored, and it lacks what was followed last. */
export const isRestored = (error: unknown): boolean => isTurnlogError(error, 'position_unknown');
