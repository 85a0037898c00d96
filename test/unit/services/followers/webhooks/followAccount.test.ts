import { expect, test } from '@jest/globals';
import { followFeed } from '../../../../../services/followers/webhooks/followAccount.ts';
import type { FeedItem, FeedPage, FollowOptions } from '../../../../../shared/feed/accountFeed.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import type { Position } from '../../../../../shared/ports/eventStore.ts';
import { isFreed } from '../../../../support/jest/garbage.ts';

const shown: WeakRef<object>[] = [];
function createItem(): FeedItem {
  const item = { event: { id: 'event_1' }, cursor: 'first' } as FeedItem;
  shown.push(new WeakRef(item.event));
  return item;
}

test('follows with memory of the ledger, passes on what retains it, and keeps no event', async () => {
  const ledger = createMemoryLedger();
  const retain = () => () => undefined;
  const feed = {
    async *followAccount(_account: string, { memory, signal }: FollowOptions) {
      const items = [createItem()];
      const permit = memory.tryReserve(100)!;
      (await memory.reserve(10, signal)).release();
      const page: FeedPage = { items, cursor: 'last', caughtUp: true, retain };
      yield page;
      items.length = 0;
      permit.release();
      await new Promise(() => undefined);
    },
  };
  const followed = followFeed(
    feed,
    {} as never,
    ledger,
  )({
    accountId: 'acct_1',
    cursor: 'c',
    position: '0' as Position,
    types: null,
    signal: new AbortController().signal,
  })[Symbol.asyncIterator]();
  const readFirst = async (): Promise<void> => {
    const { value } = await followed.next();
    expect(value).toEqual({ event: { id: 'event_1' }, cursor: 'first', retain });
    expect(ledger.usage('webhooks').used).toBe(100);
  };
  await readFirst();
  expect(await followed.next()).toEqual({ done: false, value: { cursor: 'last' } });
  void followed.next();
  expect(await isFreed(shown[0]!)).toBe(true);
  expect(ledger.usage('webhooks').used).toBe(0);
});
