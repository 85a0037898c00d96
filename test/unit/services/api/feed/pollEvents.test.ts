import { afterEach, expect, jest, test } from '@jest/globals';
import { pollEvents } from '../../../../../services/api/feed/pollEvents.ts';
import type { AccountFeed, FeedPage } from '../../../../../shared/feed/accountFeed.ts';
import { LIMITS } from '../../../../../shared/limits.ts';

afterEach(() => void jest.restoreAllMocks());

const PAGE_MS = LIMITS.feed.progressMs;
const ENOUGH = 20;

/** A log that is looked through for ever, without an event of the account; and how often it told so. */
function endless() {
  let now = 0;
  let pages = 0;
  jest.spyOn(performance, 'now').mockImplementation(() => now);
  async function* followAccount(): AsyncGenerator<FeedPage, void> {
    yield { items: [], cursor: 'first', caughtUp: false };
    for (; pages < ENOUGH; now += PAGE_MS) {
      pages += 1;
      yield { items: [], cursor: `cursor ${pages}`, caughtUp: false };
    }
  }
  const feed = { followAccount } as unknown as AccountFeed;
  return { feed, pages: () => pages };
}

const options = { accountId: 'a', source: '/', limit: 100, from: 'start' } as const;

test.each([
  [0, 2],
  [4.5 * PAGE_MS, 6],
])('a page that waits %i ms ends in a long log, and leads on from there', async (waitMs, most) => {
  const { feed, pages } = endless();
  const { signal } = new AbortController();
  const page = await pollEvents(feed, { ...options, waitMs, signal });
  expect(page).toEqual({ text: '', cursor: `cursor ${most}` });
  expect(pages()).toBe(most);
});
