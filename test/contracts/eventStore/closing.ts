import { describe, expect, test } from '@jest/globals';
import {
  follow,
  idsOf,
  newEvents,
  newStream,
  readAll,
  refusedWith,
  type EventStoreFixture,
} from './support.ts';

export function closingContract(open: () => Promise<EventStoreFixture>): void {
  async function withFixture(use: (fixture: EventStoreFixture) => Promise<void>): Promise<void> {
    const fixture = await open();
    try {
      await use(fixture);
    } finally {
      await fixture.dispose();
    }
  }

  describe('close', () => {
    test('makes every later call fail with store_unavailable', () =>
      withFixture(async (fixture) => {
        const store = fixture.store();
        const { position: before } = await store.append(newStream(), 'no_stream', newEvents(1));
        await store.close();
        await refusedWith(
          'store_unavailable',
          store.append(newStream(), 'no_stream', newEvents(1)),
        );
        await refusedWith(
          'store_unavailable',
          store.readStream(newStream(), { direction: 'forwards', limit: 1 }),
        );
        await refusedWith('store_unavailable', store.head());
        await refusedWith('store_unavailable', store.firstEvent());
        await refusedWith('store_unavailable', store.eventAt(before));
        await refusedWith('store_unavailable', follow(store, undefined).next());
      }));

    test('may be called again, also at the same time', () =>
      withFixture(async (fixture) => {
        const store = fixture.store();
        await Promise.all([store.close(), store.close()]);
        await expect(store.close()).resolves.toBeUndefined();
      }));

    test('finishes the appends that were accepted', () =>
      withFixture(async (fixture) => {
        const store = fixture.store();
        const appends = Array.from({ length: 50 }, () => ({
          stream: newStream(),
          events: newEvents(2),
        }));
        const accepted = Promise.all(
          appends.map(({ stream, events }) => store.append(stream, 'no_stream', events)),
        );
        await store.close();
        await expect(accepted).resolves.toHaveLength(50);
        await fixture.reopen();
        for (const { stream, events } of appends)
          expect(idsOf(await readAll(fixture.store(), stream))).toEqual(idsOf(events));
      }));

    test('fails a subscription that waits, so that its owner resumes elsewhere', () =>
      withFixture(async (fixture) => {
        const store = fixture.store();
        const subscription = follow(store, await store.head());
        await subscription.next();
        const waiting = refusedWith('store_unavailable', subscription.next());
        await store.close();
        await waiting;
      }));
  });
}
