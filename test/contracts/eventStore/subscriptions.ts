import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout } from 'node:timers/promises';
import { STREAM_KINDS } from '../../../shared/eventlog/eventTypes.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import {
  appendEach,
  expectStrictlyAscending,
  follow,
  holds,
  idsOf,
  movedOn,
  newEvent,
  newEvents,
  newStream,
  onlyOf,
  readAll,
  refusedWith,
  type EventStoreFixture,
  type Opened,
} from './support.ts';

export function subscriptionContract(opened: Opened): void {
  describe('subscribe', () => {
    test('delivers the events of all streams in the order in which they were written', async () => {
      const store = opened().store();
      const after = await store.head();
      const streams = STREAM_KINDS.map((kind) => newStream(kind));
      for (const expected of ['no_stream', 0, 1] as const) {
        for (const stream of streams) await store.append(stream, expected, newEvents(1));
      }
      const subscription = follow(store, after);
      const batches = await subscription.until(holds(streams, 3 * streams.length));
      subscription.stop();
      const events = onlyOf(streams, batches);
      expect(events.map((event) => event.stream)).toEqual([...streams, ...streams, ...streams]);
      expectStrictlyAscending(events.map((event) => event.position));
      expect(events.filter((event) => event.stream === streams[1])).toEqual(
        await readAll(store, streams[1] ?? ''),
      );
    });

    test('begins with the first event of the log when no position is given', async () => {
      const store = opened().store();
      const streams = [newStream(), newStream()];
      for (const stream of streams) await store.append(stream, 'no_stream', newEvents(3));
      const subscription = follow(store, undefined, 50);
      const batches = await subscription.until((_, batch) => batch.caughtUp);
      subscription.stop();
      expectStrictlyAscending(
        batches.flatMap((batch) => batch.events.map((event) => event.position)),
      );
      expect(onlyOf(streams, batches).map((event) => [event.stream, event.revision])).toEqual(
        streams.flatMap((stream) => [0, 1, 2].map((revision) => [stream, revision])),
      );
      const resumed = follow(store, batches[0]?.position, 10_000);
      const rest = await resumed.until((_, batch) => batch.caughtUp);
      resumed.stop();
      expect(rest.flatMap((batch) => idsOf(batch.events))).toEqual(
        batches.slice(1).flatMap((batch) => idsOf(batch.events)),
      );
    });

    test('passes from catching up to live without a gap or a double while events are being written', async () => {
      const store = opened().store();
      const after = await store.head();
      const streams = Array.from({ length: 10 }, () => ({
        name: newStream(),
        events: newEvents(60),
      }));
      const names = streams.map((stream) => stream.name);
      const writing = Promise.all(
        streams.map(({ name, events }) => appendEach(store, name, events)),
      );
      const subscription = follow(store, after, 7);
      const events = onlyOf(names, await subscription.until(holds(names, 600)));
      await writing;
      subscription.stop();
      expectStrictlyAscending(events.map((event) => event.position));
      for (const { name, events: written } of streams) {
        expect(idsOf(events.filter((event) => event.stream === name))).toEqual(idsOf(written));
      }
    });

    test("resumes exactly after any position, an event's or a batch's", async () => {
      const store = opened().store();
      const after = await store.head();
      const stream = newStream();
      await appendEach(store, stream, newEvents(8));
      const stored = await readAll(store, stream);
      for (const { position, revision } of stored.slice(0, -1)) {
        const subscription = follow(store, position, 3);
        const batches = await subscription.until(holds([stream], 7 - revision));
        subscription.stop();
        expect(onlyOf([stream], batches)).toEqual(stored.slice(revision + 1));
      }
      const seen: string[] = [];
      for (let position = after; seen.length < 8;) {
        const subscription = follow(store, position, 3);
        const { value } = await subscription.next();
        subscription.stop();
        position = value?.position;
        seen.push(...idsOf(onlyOf([stream], [value])));
      }
      expect(seen).toEqual(idsOf(stored));
    });

    test('resumes after a position over a restart', async () => {
      const stream = newStream();
      const [first] = await appendEach(opened().store(), stream, newEvents(4));
      await opened().reopen();
      const subscription = follow(opened().store(), first?.position);
      const batches = await subscription.until(holds([stream], 3));
      subscription.stop();
      expect(onlyOf([stream], batches).map((event) => event.revision)).toEqual([1, 2, 3]);
    });

    test('never returns more than the asked number of events, and says where each batch ends', async () => {
      const store = opened().store();
      const after = await store.head();
      const stream = newStream();
      await store.append(stream, 'no_stream', newEvents(10));
      const subscription = follow(store, after, 4);
      const batches = await subscription.until(holds([stream], 10));
      subscription.stop();
      for (const batch of batches) {
        expect(batch.events.length).toBeLessThanOrEqual(4);
        expect(batch.position).toBe(batch.events.at(-1)?.position ?? after);
      }
    });

    test('reads a batch only when it is asked for: what was written meanwhile counts', async () => {
      const store = opened().store();
      const after = await store.head();
      const stream = newStream();
      await store.append(stream, 'no_stream', newEvents(4));
      const subscription = follow(store, after, 2);
      const first = await subscription.next();
      expect(first.value).toMatchObject({
        caughtUp: false,
        events: [{ revision: 0 }, { revision: 1 }],
      });
      // A store that had read ahead would now say of revisions 2 and 3 that nothing follows.
      await store.append(stream, 3, newEvents(1));
      const second = await subscription.next();
      expect(second.value).toMatchObject({
        caughtUp: false,
        events: [{ revision: 2 }, { revision: 3 }],
      });
      const third = await subscription.next();
      expect(third.value).toMatchObject({ caughtUp: true, events: [{ revision: 4 }] });
      subscription.stop();
    });

    test('says once that it has caught up when there is nothing to deliver, then waits for an event', async () => {
      const store = opened().store();
      const { position } = await store.append(newStream(), 'no_stream', newEvents(1));
      const subscription = follow(store, position);
      expect((await subscription.next()).value).toMatchObject({ events: [], caughtUp: true });
      const waiting = subscription.next();
      const stream = newStream();
      await store.append(stream, 'no_stream', newEvents(1));
      expect((await waiting).value).toMatchObject({ events: [{ stream }], caughtUp: true });
      subscription.stop();
    });

    test('wakes for every event that is written while it waits', async () => {
      const store = opened().store();
      const subscription = follow(store, await store.head());
      await subscription.next();
      const stream = newStream();
      // So many that a store which polls a few times a second runs into the test's time limit.
      for (let revision = 0; revision < 400; revision += 1) {
        const waiting = subscription.next();
        await store.append(stream, revision === 0 ? 'no_stream' : revision - 1, newEvents(1));
        expect((await waiting).value).toMatchObject({ events: [{ stream, revision }] });
      }
      subscription.stop();
    });

    test('delivers events of every kind of stream that there is', async () => {
      const store = opened().store();
      const after = await store.head();
      const streams = STREAM_KINDS.map((kind) => newStream(kind));
      for (const stream of streams) await store.append(stream, 'no_stream', newEvents(1));
      const subscription = follow(store, after);
      const batches = await subscription.until((_, batch) => batch.caughtUp);
      subscription.stop();
      expect(onlyOf(streams, batches).map(({ stream }) => stream)).toEqual(streams);
    });

    test('gives every subscriber everything, each at its own pace', async () => {
      const store = opened().store();
      const after = await store.head();
      const stream = newStream();
      const events = newEvents(30);
      const subscriptions = [1, 4, 100].map((batchSize) => follow(store, after, batchSize));
      const following = Promise.all(
        subscriptions.map((subscription) => subscription.until(holds([stream], 30))),
      );
      await appendEach(store, stream, events);
      for (const batches of await following)
        expect(idsOf(onlyOf([stream], batches))).toEqual(idsOf(events));
      for (const subscription of subscriptions) subscription.stop();
    });

    test('ends without an error when it is aborted while it waits', async () => {
      const store = opened().store();
      const subscription = follow(store, await store.head());
      await subscription.next();
      const waiting = subscription.next();
      await setTimeout(20);
      subscription.stop();
      expect(await waiting).toEqual({ done: true, value: undefined });
    });

    test('ends without an error when it is aborted while it catches up', async () => {
      const store = opened().store();
      const after = await store.head();
      await store.append(newStream(), 'no_stream', newEvents(50));
      const subscription = follow(store, after, 1);
      await subscription.next();
      subscription.stop();
      expect(await subscription.next()).toEqual({ done: true, value: undefined });
    });

    test('lets a timer abort it in the middle of a long catch-up', async () => {
      const store = opened().store();
      const after = await store.head();
      for (let count = 0; count < 20; count += 1)
        await store.append(newStream(), 'no_stream', newEvents(100));
      const controller = new AbortController();
      let seen = 0;
      for await (const batch of store.subscribe({
        after,
        batchSize: 1,
        signal: controller.signal,
      })) {
        if (seen === 0) setImmediate(() => controller.abort());
        seen += batch.events.length;
      }
      expect(seen).toBeLessThan(2000);
    });

    test('delivers nothing when it is aborted from the beginning', async () => {
      const store = opened().store();
      await store.append(newStream(), 'no_stream', [newEvent()]);
      const subscription = follow(store, undefined);
      subscription.stop();
      expect(await subscription.next()).toEqual({ done: true, value: undefined });
    });
  });
}

/**
 * Where a subscription may begin, on a log that only this suite writes to unless a server is shared
 * with others.
 */
export function startContract(open: () => Promise<EventStoreFixture>): void {
  describe('the start of a subscription', () => {
    let fixture: EventStoreFixture;
    beforeAll(async () => {
      fixture = await open();
    });
    afterAll(() => fixture.dispose());

    const isRefused = async (after: string): Promise<void> => {
      const subscription = follow(fixture.store(), after as Position);
      await refusedWith('position_invalid', subscription.next());
      subscription.stop();
    };

    test('refuses any position of an empty log', async () => {
      if ((await fixture.store().head()) !== undefined) return;
      await isRefused('zzz');
      await isRefused('0000000000000001');
      await isRefused('00000000009000000000/00000000009000000000');
    });

    test('refuses what is not a position', async () => {
      await fixture.store().append(newStream(), 'no_stream', newEvents(2));
      const others = [
        'zzz',
        '',
        '-1',
        '1e3',
        '00000000000000000001/',
        '18446744073709551615/18446744073709551615',
      ];
      for (const text of others) await isRefused(text);
    });

    test('refuses a position beyond the end by its name, and accepts the end itself', async () => {
      const store = fixture.store();
      const { position } = await store.append(newStream(), 'no_stream', newEvents(1));
      const beyond = movedOn(position, 1_000_000_000n);
      const refused = follow(store, beyond);
      await expect(refused.next()).rejects.toMatchObject({
        code: 'position_invalid',
        message: expect.stringContaining(beyond),
      });
      const accepted = follow(store, position);
      expect((await accepted.next()).value).toMatchObject({ events: [], caughtUp: true });
      accepted.stop();
    });
  });
}
