import { EventEmitter } from 'node:events';
import { expect, test } from '@jest/globals';
import type { Context } from 'koa';
import { awaitFirstPages, streamEvents } from '../../../../../services/api/feed/streamEvents.ts';
import type { FeedItem, FeedPage, FeedStart } from '../../../../../shared/feed/accountFeed.ts';
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

const apiWith = (isErased: (stream: string) => boolean | Promise<boolean>) => ({
  readAudit: { record: async () => undefined },
  eventSource: '/',
  store: { keys: { isErased } },
});

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
  const api = apiWith(() => false);
  const reader = { actor: { account_id: 'a' }, isAllowed: async () => true, name: undefined };
  const events = streamEvents(api as never, reader as never, pages(), {
    res: response,
    state: {},
  } as unknown as Context);
  return { response, asked, shown, events };
}

const soon = () => new Promise(setImmediate);

test('a stream that ends early does not wait for a page, and ends the feed behind it', async () => {
  const arrival = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const page: FeedPage = { items: [], cursor: 'c', caughtUp: true };
  async function* pages(): AsyncGenerator<FeedPage, void> {
    try {
      yield page;
      await arrival.promise;
      yield page;
    } finally {
      ended.resolve();
    }
  }
  const first = await awaitFirstPages(pages());
  expect((await first.next()).value).toBe(page);
  await first.return();
  arrival.resolve();
  await ended.promise;
});

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

test('an event is not kept in memory while its client does not read on', async () => {
  const { events } = stream();
  const sent = new WeakRef((await events.next()).value!);
  expect(await isFreed(sent)).toBe(true);
  await events.return();
});

test('events whose texts were erased before they could be sent are read again', async () => {
  const erased = new Set<string>();
  const followed: unknown[] = [];
  let released = 0;
  /** The event with a number, whose texts are those of a session while it is not erased. */
  const itemOf = (number: number): FeedItem => {
    const textStream = `session-${number}`;
    const isOpen = !erased.has(textStream);
    return {
      event: { id: `${number}`, type: 'turnlog.x', key: 'k', data: isOpen ? 'text' : '' },
      cursor: `c${number}`,
      ...(isOpen && { textStream }),
    } as unknown as FeedItem;
  };
  async function* pagesFrom(first: number, after: FeedStart): AsyncGenerator<FeedPage, void> {
    followed.push(after);
    try {
      yield { items: [], cursor: `c${first - 1}`, caughtUp: false };
      const items = [0, 1, 2].map((index) => itemOf(first + index));
      yield { items, cursor: items.at(-1)!.cursor, caughtUp: true };
    } finally {
      released += 1;
    }
  }
  const reader = {
    actor: { account_id: 'a' },
    isAllowed: async () => true,
    name: undefined,
    followFrom: (from: FeedStart) => pagesFrom(2, from),
  };
  const events = streamEvents(
    apiWith(async (name) => erased.has(name)) as never,
    reader as never,
    pagesFrom(1, 'start'),
    { res: new FakeResponse(), state: {} } as unknown as Context,
  );
  const shown: unknown[] = [];
  for await (const { event, data } of events) {
    if (event === 'position') continue;
    const { id, data: text } = JSON.parse(data) as { id: string; data: string };
    shown.push([id, text]);
    if (id === '1') erased.add('session-2');
  }
  expect(shown).toEqual([
    ['1', 'text'],
    ['2', ''],
    ['3', 'text'],
    ['4', 'text'],
  ]);
  expect(followed).toEqual(['start', { after: 'c1' }]);
  expect(released).toBe(2);
});

test('an event that is erased before anything was sent is read again from the start of its page', async () => {
  const followed: FeedStart[] = [];
  let isErased = true;
  async function* pages(after: FeedStart): AsyncGenerator<FeedPage, void> {
    followed.push(after);
    yield { items: [], cursor: 'c7', caughtUp: false };
    const event = { id: 'event', type: 'turnlog.x', key: 'k' };
    const items = [{ event, cursor: 'c8', textStream: 'session-1' } as unknown as FeedItem];
    yield { items, cursor: 'c8', caughtUp: true };
  }
  const followFrom = (from: FeedStart) => {
    isErased = false;
    return pages(from);
  };
  const reader = { actor: { account_id: 'a' }, isAllowed: async () => true, followFrom };
  const ctx = { res: new FakeResponse(), state: {} } as unknown as Context;
  const events = streamEvents(apiWith(() => isErased) as never, reader as never, pages('now'), ctx);
  const names: string[] = [];
  for await (const { event } of events) names.push(event);
  expect(names).toEqual(['position', 'turnlog.x']);
  expect(followed).toEqual(['now', { after: 'c7' }]);
});
