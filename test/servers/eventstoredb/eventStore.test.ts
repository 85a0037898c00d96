import eventstore, { type EventStoreDBClient } from '@eventstore/db-client';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import type { EventStore, Position } from '../../../shared/ports/eventStore.ts';
import {
  follow,
  idsOf,
  newEvent,
  newEvents,
  newStream,
  onlyOf,
  readAll,
  refusedWith,
  untilAnswered,
} from '../../contracts/eventStore/support.ts';
import {
  openOnNode,
  type NodeAndStore,
} from '../../support/servers/eventstoredb/eventStoreDbFixture.ts';

/**
 * Short, for tests in which the server does not answer. Too short for an answer on a busy machine.
 */
const DEADLINE_MS = 600;

describe('the event store in EventStoreDB', () => {
  let on: NodeAndStore;
  let store: EventStore;
  let shortDeadlineStore: EventStore;
  let other: EventStoreDBClient;
  beforeEach(async () => {
    on = await openOnNode();
    ({ store } = on);
    shortDeadlineStore = await openEventStoreDb({
      connectionString: on.node.connectionString,
      deadlineMs: DEADLINE_MS,
    });
    other = eventstore.EventStoreDBClient.connectionString(on.node.connectionString);
  });
  afterEach(async () => {
    await other.dispose();
    await shortDeadlineStore.close();
    await on.close();
  });

  const foreign = (type = 'Deposited') => eventstore.jsonEvent({ type, data: { amount: 1 } });

  describe('limits', () => {
    test.each([
      ['an empty type', { type: '' }],
      ['a system type', { type: '$metadata' }],
      ['an id that is not a UUID', { id: 'event-1' }],
      ['types that exceed the limit as the server counts it', { type: 't'.repeat(600_000) }],
    ])('rejects %s before it calls the server', async (_, change) => {
      let appendCalls = 0;
      on.node.faults.onAppend = () => {
        appendCalls += 1;
        return 'none';
      };
      await refusedWith(
        'event_invalid',
        store.append(newStream(), 'no_stream', [{ ...newEvent(), ...change }]),
      );
      expect(appendCalls).toBe(0);
    });

    test.each([Number.MAX_SAFE_INTEGER, -2, 0.5])(
      'rejects an append after revision %d',
      async (expected) => {
        await refusedWith('event_invalid', store.append(newStream(), expected, newEvents(1)));
      },
    );

    test('reports events that only the server rejects as invalid', async () => {
      await refusedWith(
        'event_invalid',
        store.append(newStream(), 'no_stream', [
          { ...newEvent(), id: '00000000-0000-0000-0000-000000000000' },
        ]),
      );
    });
  });

  describe('a log that others write to as well', () => {
    test('reads foreign events in a stream of Turnlog, and omits them from a subscription', async () => {
      const stream = newStream();
      const events = newEvents(2);
      await store.append(stream, 'no_stream', events.slice(0, 1));
      await other.appendToStream(
        stream,
        eventstore.binaryEvent({ type: 'Image', data: new Uint8Array([1, 2, 3]) }),
      );
      await store.append(stream, 1, events.slice(1));
      expect((await readAll(store, stream)).map(({ type, revision }) => [revision, type])).toEqual([
        [0, events[0]?.type],
        [1, 'Image'],
        [2, events[1]?.type],
      ]);
      const subscription = follow(store, undefined);
      const batches = await subscription.until((found) => found.length === 2);
      subscription.stop();
      expect(idsOf(batches.flatMap((batch) => batch.events))).toEqual(idsOf(events));
    });

    test('returns the end of the log as the head, including foreign events, and lets a subscription reach it', async () => {
      const { position } = await store.append(newStream(), 'no_stream', newEvents(1));
      expect(await store.head()).toBe(position);
      const subscription = follow(store, position);
      await subscription.until((_, batch) => batch.caughtUp);
      await other.appendToStream(
        'bank-1',
        Array.from({ length: 10 }, () => foreign()),
      );
      const head = await store.head();
      expect((head ?? '') > position).toBe(true);
      const batches = await subscription.until((_, batch) => batch.position === head);
      expect(batches.flatMap((batch) => batch.events)).toEqual([]);
      expect(batches.at(-1)?.caughtUp).toBe(true);
      subscription.stop();
    });

    test.each([
      ['a text that is not a position', 'zzz', /its form is/],
      [
        'a position beyond the end of the log',
        '00000000000999999999/00000000000999999999',
        /beyond the log's end/,
      ],
      [
        'the position that 24.10.0 reports as the end',
        '18446744073709551615/18446744073709551615',
        /beyond the end of any log/,
      ],
    ])('rejects a subscription from %s', async (_, after, message) => {
      await store.append(newStream(), 'no_stream', newEvents(1));
      const refused = follow(store, after as Position).next();
      await refusedWith('position_invalid', refused);
      await expect(refused).rejects.toThrow(message);
    });

    test('reports to a subscription how far the log was scanned, so that a restart does not scan it again', async () => {
      const { position } = await store.append(newStream(), 'no_stream', newEvents(1));
      await other.appendToStream(
        'bank-1',
        Array.from({ length: 600 }, () => foreign()),
      );
      const subscription = follow(store, position);
      const batches = await subscription.until((_, batch) => batch.caughtUp);
      const reached = batches.at(-1)?.position ?? '';
      expect(reached > position).toBe(true);
      expect(batches.flatMap((batch) => batch.events)).toEqual([]);
      subscription.stop();

      const stream = newStream();
      await store.append(stream, 'no_stream', newEvents(2));
      const resumed = follow(store, batches.at(-1)?.position);
      const rest = await resumed.until((events) => events.length === 2);
      resumed.stop();
      expect(onlyOf([stream], rest)).toEqual(await readAll(store, stream));
    });

    test.each(['tombstoneStream', 'deleteStream'] as const)(
      'reports a stream as damaged after others called %s on it',
      async (remove) => {
        const stream = newStream();
        await store.append(stream, 'no_stream', newEvents(1));
        await other[remove](stream);
        await refusedWith('stream_damaged', readAll(store, stream));
        await refusedWith(
          'stream_damaged',
          store.readStream(stream, { direction: 'backwards', limit: 1 }),
        );
        expect(await readAll(store, newStream())).toEqual([]);
      },
    );

    test('rejects an append to a tombstoned stream as damaged', async () => {
      const stream = newStream();
      await store.append(stream, 'no_stream', newEvents(1));
      await other.tombstoneStream(stream);
      await refusedWith('stream_damaged', store.append(stream, 0, newEvents(1)));
    });

    test('detects an id that another process used near a conflict', async () => {
      const stream = newStream();
      const [first, second] = newEvents(2);
      if (!first || !second) throw new Error('no events');
      const otherProcess = await openEventStoreDb({ connectionString: on.node.connectionString });
      await otherProcess.append(stream, 'no_stream', [first, second]);
      await otherProcess.close();
      await refusedWith('event_id_reused', store.append(stream, 'no_stream', [second]));
      await refusedWith('stream_conflict', store.append(stream, 'no_stream', newEvents(1)));
    });
  });

  describe('an unavailable server', () => {
    test('fails appends and reads with store_unavailable, and serves again when it is back', async () => {
      const stream = newStream();
      await store.append(stream, 'no_stream', newEvents(1));
      await on.node.stop();
      await Promise.all([
        refusedWith('store_unavailable', shortDeadlineStore.append(stream, 0, newEvents(1))),
        refusedWith('store_unavailable', readAll(shortDeadlineStore, stream)),
        refusedWith('store_unavailable', shortDeadlineStore.head()),
      ]);
      await on.node.start();
      expect(await untilAnswered(() => readAll(shortDeadlineStore, stream))).toHaveLength(1);
      const events = newEvents(1);
      expect(await untilAnswered(() => shortDeadlineStore.append(stream, 0, events))).toMatchObject(
        {
          revision: 1,
        },
      );
    });

    test.each(['unavailable', 'silent'] as const)(
      'fails calls to a server that is %s, and resumes when it has recovered',
      async (fault) => {
        const stream = newStream();
        const events = newEvents(1);
        on.node.faults[fault] = true;
        await refusedWith(
          'store_unavailable',
          shortDeadlineStore.append(stream, 'no_stream', events),
        );
        await refusedWith('store_unavailable', readAll(shortDeadlineStore, stream));
        on.node.faults[fault] = false;
        expect(
          await untilAnswered(() => shortDeadlineStore.append(stream, 'no_stream', events)),
        ).toMatchObject({ revision: 0 });
        expect(idsOf(await untilAnswered(() => readAll(shortDeadlineStore, stream)))).toEqual(
          idsOf(events),
        );
      },
    );

    test('waits for a slow server until the deadline', async () => {
      on.node.faults.delayMs = 50;
      expect(await store.append(newStream(), 'no_stream', newEvents(1))).toMatchObject({
        revision: 0,
      });
    });

    test('opens without a server, and works when one starts', async () => {
      await on.node.stop();
      const openedEarly = await openEventStoreDb({ connectionString: on.node.connectionString });
      const appending = openedEarly.append(newStream(), 'no_stream', newEvents(1));
      await on.node.start();
      expect(await appending).toMatchObject({ revision: 0 });
      await openedEarly.close();
    });

    test('closes after the deadline of the pending appends at the latest', async () => {
      await on.node.stop();
      const appending = refusedWith(
        'store_unavailable',
        shortDeadlineStore.append(newStream(), 'no_stream', newEvents(1)),
      );
      await shortDeadlineStore.close();
      await appending;
    });

    test('resumes a subscription without gaps or duplicates', async () => {
      const stream = newStream();
      await store.append(stream, 'no_stream', newEvents(2));
      const subscription = follow(store, undefined);
      await subscription.until((events) => events.length === 2);
      await on.node.stop();
      await on.node.start();
      await store.append(stream, 1, newEvents(2));
      const batches = await subscription.until((events) => events.length >= 2);
      subscription.stop();
      expect(batches.flatMap((batch) => batch.events.map((event) => event.revision))).toEqual([
        2, 3,
      ]);
    });
  });

  test('keeps an append on another connection of the process when one connection breaks', async () => {
    const neighbour = await openOnNode();
    try {
      let arrived = 0;
      neighbour.node.faults.delayMs = 50;
      neighbour.node.faults.onAppend = () => {
        arrived += 1;
        return 'none';
      };
      const appending = neighbour.store.append(newStream(), 'no_stream', newEvents(1));
      on.node.faults.onAppend = () => (arrived === 0 ? 'stream_error_after_write' : 'none');
      await store.append(newStream(), 'no_stream', newEvents(1));
      expect(await appending).toMatchObject({ revision: 0 });
      expect(arrived).toBe(1);
    } finally {
      await neighbour.close();
    }
  });

  test('reopens a subscription that the server never confirmed', async () => {
    const stream = newStream();
    await store.append(stream, 'no_stream', newEvents(1));
    on.node.faults.silent = true;
    const subscription = follow(shortDeadlineStore, undefined);
    const first = subscription.next();
    await refusedWith('store_unavailable', shortDeadlineStore.head());
    on.node.faults.silent = false;
    expect((await first).value).toMatchObject({ events: [{ stream, revision: 0 }] });
    subscription.stop();
  });

  test('ends an aborted subscription at once while no node can be found', async () => {
    await on.node.stop();
    const unconnected = await openEventStoreDb({
      connectionString: `esdb+discover://127.0.0.1:${on.node.port}?tls=false&maxDiscoverAttempts=1000`,
    });
    const subscription = follow(unconnected, undefined);
    const waiting = subscription.next();
    subscription.stop();
    expect(await waiting).toEqual({ done: true, value: undefined });
    await on.node.start();
    await unconnected.close();
  });

  test('rejects an invalid connection string without repeating its password', async () => {
    const opening = openEventStoreDb({ connectionString: 'postgres://admin:secret@127.0.0.1' });
    await refusedWith('configuration_invalid', opening);
    await expect(opening).rejects.not.toThrow(/secret/);
  });
});
