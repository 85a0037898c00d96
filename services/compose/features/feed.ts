import type { ProtectedStore } from '../../../shared/eventlog/encryption/protectedStore.ts';
import { createAccountFeed, type AccountFeed } from '../../../shared/feed/accountFeed.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { createPermitPool, type PermitPool } from '../../../shared/lib/concurrency/capacity.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import type { Opening } from '../opening.ts';

/**
 * Opens the feed of a process, and the part that ends its streams when the process stops, so that
 * clients reconnect elsewhere.
 */
export function openFeed(
  { opened }: Pick<Opening, 'opened'>,
  store: ProtectedStore,
): { served: { feed: AccountFeed; followers: PermitPool }; part: ProcessPart } {
  const feed = opened.use(createAccountFeed(store));
  const followers = createPermitPool('feed_followers', {
    permits: LIMITS.feed.followers,
    bytes: Infinity,
  });
  return { served: { feed, followers }, part: { upkeep: () => feed } };
}
