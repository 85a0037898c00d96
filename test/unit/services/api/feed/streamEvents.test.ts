import { EventEmitter } from 'node:events';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import { streamEvents } from '../../../../../services/api/feed/streamEvents.ts';
import type { FeedItem, FeedPage } from '../../../../../shared/feed/accountFeed.ts';
import { isFreed } from '../../../../support/jest/garbage.ts';

/** A response whose buffer drains when the test says so. */
class FakeResponse extends EventEmitter {
  writableNeedDrain = false;
  closed = false;
  drain(): void {
    this.writableNeedDrain = false;
    this.emit('drain');
  }
  close(): void {
    this.closed = true;
    this.emit('close');
  }
}

/** A stream of pages with an event each, how many of them were asked for, and their events. */
function stream(count = Infinity) {
  const response = new FakeResponse();
  const asked = { pages: 0 };
  const shown: WeakRef<FeedItem>[] = [];
  function createItem(): FeedItem {
    const item = {
      event: { id: 'event', type: 'turnlog.x', key: 'k' },
      cursor: 'c',
    } as unknown as FeedItem;
    shown.push(new WeakRef(item));
    return item;
  }
  async function* pages(): AsyncGenerator<FeedPage, void> {
    while (asked.pages < count) {
      asked.pages += 1;
      const items = [createItem()];
      yield { items, cursor: 'c', caughtUp: false };
      items.length = 0;
    }
    await new Promise(() => undefined);
  }
  const api = { readAudit: { record: async () => undefined }, eventSource: '/' };
  const reader = { actor: { account_id: 'a' }, isAllowed: async () => true, name: undefined };
  const events = streamEvents(api as never, reader as never, pages(), {
    res: response,
    state: {},
  } as unknown as Context);
  return { response, asked, shown, events };
}

const soon = () => new Promise(setImmediate);

test('the next page is asked for when the client has received the last one', async () => {
  const { response, asked, events } = stream();
  expect((await events.next()).value).toMatchObject({ id: 'c', event: 'turnlog.x' });
  response.writableNeedDrain = true;
  const next = events.next();
  await soon();
  expect(asked.pages).toBe(1);
  // A drained response may be filled again by what the stream still has.
  response.emit('drain');
  await soon();
  expect(asked.pages).toBe(1);
  response.drain();
  expect((await next).value).toMatchObject({ id: 'c' });
  expect(asked.pages).toBe(2);
  expect(response.listenerCount('drain')).toBe(0);
});

test('a client that has left is not waited for', async () => {
  const { response, asked, events } = stream();
  await events.next();
  response.writableNeedDrain = true;
  const next = events.next();
  await soon();
  response.close();
  await next;
  expect(asked.pages).toBe(2);
});

test('an event that was sent is not kept in memory while the stream waits for the next one', async () => {
  const { shown, events } = stream(1);
  await events.next();
  void events.next();
  expect(await isFreed(shown[0]!)).toBe(true);
});
