import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { pollEvents } from '../../../../../services/api/feed/pollEvents.ts';
import type {
  AccountFeed,
  FeedItem,
  FeedPage,
  FollowOptions,
} from '../../../../../shared/feed/accountFeed.ts';
import { holdPage, type FeedMemory } from '../../../../../shared/feed/pageMemory.ts';
import type { Permit } from '../../../../../shared/lib/concurrency/capacity.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { permitWith, unlimitedFeedMemory } from '../../../../support/builders/memory.ts';

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

const options = {
  accountId: 'a',
  source: '/',
  limit: 100,
  from: 'start',
  memory: unlimitedFeedMemory,
} as const;

test.each([
  [0, 2],
  [4.5 * PAGE_MS, 6],
])('a page that waits %i ms ends in a long log, and leads on from there', async (waitMs, most) => {
  const { feed, pages } = endless();
  const { signal } = new AbortController();
  const page = await pollEvents(feed, { ...options, waitMs, signal });
  expect(page).toMatchObject({ text: '', cursor: `cursor ${most}` });
  expect(pages()).toBe(most);
});

describe('the memory of a page', () => {
  const PAGE_BYTES = 100_000;
  const held = { used: 0, bytes: 0, waits: 0 };
  const item = (id: string) =>
    ({ event: { id, type: 'turnlog.x', key: 'k' }, cursor: `cursor ${id}` }) as unknown as FeedItem;

  /** A feed whose pages have an event each; only so many of them find memory at once. */
  function feedOf(count: number, free: number, itemsAt = (at: number) => [item(String(at))]) {
    Object.assign(held, { used: 0, bytes: 0, waits: 0 });
    async function* pages({ memory, signal }: FollowOptions): AsyncGenerator<FeedPage, void> {
      yield { items: [], cursor: 'cursor 0', caughtUp: false };
      for (let at = 1; at <= count; at += 1) {
        const permit = memory.tryReserve(PAGE_BYTES) ?? (await memory.reserve(PAGE_BYTES, signal));
        const { retain, release } = holdPage(permit);
        const page = { items: itemsAt(at), cursor: `cursor ${at}`, caughtUp: false, retain };
        try {
          yield page;
        } finally {
          release();
        }
      }
      throw new Error('the log can not be read');
    }
    async function* followAccount(_account: string, { memory, ...rest }: FollowOptions) {
      try {
        yield* pages({ ...rest, memory });
      } catch (error) {
        if (!rest.signal.aborted) throw error;
      }
    }
    const permit = (bytes: number): Permit => {
      held.used += 1;
      held.bytes += bytes;
      let isHeld = true;
      const release = (): void => {
        if (isHeld) held.used -= 1;
        if (isHeld) held.bytes -= bytes;
        isHeld = false;
      };
      return permitWith(release);
    };
    memory = {
      tryReserve: (bytes) => (held.used < free ? permit(bytes) : undefined),
      async reserve(bytes) {
        held.waits += 1;
        return permit(bytes);
      },
    };
    return { followAccount } as unknown as AccountFeed;
  }
  let memory: FeedMemory;
  const poll = (feed: AccountFeed, limit = 100) =>
    pollEvents(feed, {
      ...options,
      memory,
      limit,
      waitMs: 0,
      signal: new AbortController().signal,
    });

  test('is held until it is released', async () => {
    const page = await poll(feedOf(3, 10), 2);
    expect([page.text.split('\n').length - 1, page.cursor]).toEqual([2, 'cursor 2']);
    expect(held).toMatchObject({ used: 2, waits: 0 });
    page.release();
    expect(held.used).toBe(0);
  });

  test('is waited for by the first event alone: a page that has some ends without more', async () => {
    const waiting = await poll(feedOf(3, 0));
    expect([waiting.text.split('\n').length - 1, waiting.cursor]).toEqual([1, 'cursor 1']);
    expect(held).toMatchObject({ used: 1, waits: 1 });
    const page = await poll(feedOf(5, 2));
    expect([page.text.split('\n').length - 1, page.cursor]).toEqual([2, 'cursor 2']);
    expect(held).toMatchObject({ used: 2, waits: 0 });
  });

  test('is that of its lines, however large the pages of the log are that they come from', async () => {
    const page = await poll(
      feedOf(6, 10, (at) => (at % 2 === 0 ? [item(String(at))] : [])),
      3,
    );
    expect(page.cursor).toBe('cursor 6');
    expect(held.bytes).toBe(5 * Buffer.byteLength(page.text));
  });

  test('that lacks in a scan without events ends it at a later cursor', async () => {
    const feed = feedOf(5, 10, () => []);
    const { tryReserve } = memory;
    let left = 3;
    memory.tryReserve = (bytes) => ((left -= 1) < 0 ? undefined : tryReserve(bytes));
    expect(await poll(feed)).toMatchObject({ text: '', cursor: 'cursor 3' });
    expect(held).toMatchObject({ used: 0, waits: 0 });
  });

  test('is released when the events can not be read', async () => {
    await expect(poll(feedOf(1, 10))).rejects.toThrow('the log can not be read');
    expect(held.used).toBe(0);
  });
});
