/**
 * The stand-in for a server, seen with the client's own public calls: what it does is what a server
 * is documented to do.
 */
import eventstore, {
  type AllStreamResolvedEvent,
  type EventStoreDBClient,
  type ResolvedEvent,
} from '@eventstore/db-client';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { randomUUID } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import {
  startEventStoreDbNode,
  type EventStoreDbNode,
} from '../../support/servers/eventstoredb-node/index.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const event = (n: number, id = randomUUID()) =>
  eventstore.jsonEvent({
    id,
    type: n % 2 === 0 ? 'even' : 'odd',
    data: { n },
    metadata: { by: 'test' },
  });

const numberOf = ({ event: recorded }: ResolvedEvent | AllStreamResolvedEvent): unknown =>
  (recorded?.data as { n?: number } | undefined)?.n;

describe('the EventStoreDB node for tests', () => {
  let folder: string;
  let node: EventStoreDbNode;
  let client: EventStoreDBClient;
  beforeEach(async () => {
    folder = await temporaryFolder();
    node = await startEventStoreDbNode({ folder });
    client = eventstore.EventStoreDBClient.connectionString(node.connectionString);
  });
  afterEach(async () => {
    await client.dispose();
    await node.close();
    await rm(folder, { recursive: true });
  });

  const numbers = async (
    reading: AsyncIterable<ResolvedEvent | AllStreamResolvedEvent>,
  ): Promise<unknown[]> => {
    const read: unknown[] = [];
    for await (const resolved of reading) read.push(numberOf(resolved));
    return read;
  };

  /**
   * Through BatchAppend, and through Append, which the client takes when a call has credentials of
   * its own.
   */
  const WAYS = [
    ['BatchAppend', {}],
    ['Append', { credentials: { username: 'admin', password: 'changeit' } }],
  ] as const;

  describe.each(WAYS)('%s', (_, options) => {
    test('appends at the expected revision and names the current one in a conflict', async () => {
      const first = await client.appendToStream('s', [event(0), event(1)], {
        expectedRevision: 'no_stream',
        ...options,
      });
      expect(first).toMatchObject({ success: true, nextExpectedRevision: 1n });
      await expect(
        client.appendToStream('s', event(2), { expectedRevision: 'no_stream', ...options }),
      ).rejects.toMatchObject({ type: 'wrong-expected-version', actualVersion: 1n });
      await expect(
        client.appendToStream('s', event(2), { expectedRevision: 7n, ...options }),
      ).rejects.toMatchObject({ type: 'wrong-expected-version', expectedVersion: 7n });
      await expect(
        client.appendToStream('t', event(2), { expectedRevision: 'stream_exists', ...options }),
      ).rejects.toMatchObject({ type: 'wrong-expected-version', actualVersion: 'no_stream' });
      expect(
        await client.appendToStream('s', event(2), { expectedRevision: 'any', ...options }),
      ).toMatchObject({ nextExpectedRevision: 2n });
    });

    test('takes the same ids at the same place as done, and does not look for them elsewhere', async () => {
      const events = [event(0), event(1)];
      const first = await client.appendToStream('s', events, {
        expectedRevision: 'no_stream',
        ...options,
      });
      await client.appendToStream('s', event(2), { expectedRevision: 1n, ...options });
      expect(
        await client.appendToStream('s', events, { expectedRevision: 'no_stream', ...options }),
      ).toEqual(first);
      expect(
        await client.appendToStream('s', events, { expectedRevision: 'any', ...options }),
      ).toEqual(first);
      await expect(
        client.appendToStream('s', [...events, event(9)], {
          expectedRevision: 'no_stream',
          ...options,
        }),
      ).rejects.toMatchObject({ type: 'wrong-expected-version' });
      expect(
        await client.appendToStream('t', events, { expectedRevision: 'no_stream', ...options }),
      ).toMatchObject({ nextExpectedRevision: 1n });
      expect(
        await client.appendToStream('t', events, { expectedRevision: 1n, ...options }),
      ).toMatchObject({ nextExpectedRevision: 3n });
    });

    test('refuses more than a megabyte', async () => {
      const large = eventstore.jsonEvent({
        type: 'large',
        data: { text: 'x'.repeat(1024 * 1024) },
      });
      await expect(client.appendToStream('s', large, options)).rejects.toMatchObject({
        type: 'maximum-append-size-exceeded',
        maxAppendSize: 1024 * 1024,
      });
    });
  });

  test('reads a stream both ways, from any revision, beyond its pages', async () => {
    await client.appendToStream(
      's',
      Array.from({ length: 100 }, (_, n) => event(n)),
    );
    const all = Array.from({ length: 100 }, (_, n) => n);
    expect(await numbers(client.readStream('s'))).toEqual(all);
    expect(
      await numbers(client.readStream('s', { direction: 'backwards', fromRevision: 'end' })),
    ).toEqual(all.toReversed());
    expect(await numbers(client.readStream('s', { fromRevision: 40n, maxCount: 40 }))).toEqual(
      all.slice(40, 80),
    );
    expect(
      await numbers(client.readStream('s', { direction: 'backwards', fromRevision: 2n })),
    ).toEqual([2, 1, 0]);
    await expect(numbers(client.readStream('none'))).rejects.toMatchObject({
      type: 'stream-not-found',
    });
  });

  test('reads $all from a position: forwards with it, backwards without it', async () => {
    for (let n = 0; n < 5; n += 1) await client.appendToStream(`s-${n}`, event(n));
    const positions: { commit: bigint; prepare: bigint }[] = [];
    // The first events of a log are the server's own.
    for await (const { event: read } of client.readAll())
      if (read && !read.type.startsWith('$')) positions.push(read.position);
    const [, , fromPosition] = positions;
    if (!fromPosition) throw new Error('no position');
    expect(await numbers(client.readAll({ fromPosition }))).toEqual([2, 3, 4]);
    expect(await numbers(client.readAll({ fromPosition, direction: 'backwards' }))).toEqual([1, 0]);
    expect(
      await numbers(client.readAll({ fromPosition: 'end', direction: 'backwards', maxCount: 2 })),
    ).toEqual([4, 3]);
  });

  test('hides a deleted stream, and goes on with its revisions when it is written again', async () => {
    await client.appendToStream('s', [event(0), event(1)]);
    await client.deleteStream('s');
    await expect(numbers(client.readStream('s'))).rejects.toMatchObject({
      type: 'stream-not-found',
    });
    expect(
      await client.appendToStream('s', event(2), { expectedRevision: 'no_stream' }),
    ).toMatchObject({ nextExpectedRevision: 2n });
    expect(await numbers(client.readStream('s'))).toEqual([2]);
    await expect(client.deleteStream('s', { expectedRevision: 0n })).rejects.toMatchObject({
      type: 'wrong-expected-version',
    });
  });

  test('ends a tombstoned stream for ever', async () => {
    await client.appendToStream('s', event(0));
    await client.tombstoneStream('s');
    await expect(client.appendToStream('s', event(1))).rejects.toMatchObject({
      type: 'stream-deleted',
    });
    await expect(numbers(client.readStream('s'))).rejects.toMatchObject({ type: 'stream-deleted' });
    await expect(client.deleteStream('s')).rejects.toMatchObject({ type: 'stream-deleted' });
  });

  /** Collects from a subscription until `count` events have come. */
  async function collect(
    subscription: AsyncIterable<ResolvedEvent | AllStreamResolvedEvent>,
    count: number,
  ): Promise<unknown[]> {
    const read: unknown[] = [];
    for await (const resolved of subscription) {
      read.push(numberOf(resolved));
      if (read.length === count) break;
    }
    return read;
  }

  test('subscribes to a stream after a revision, catching up and then live', async () => {
    await client.appendToStream(
      's',
      Array.from({ length: 50 }, (_, n) => event(n)),
    );
    const subscription = client.subscribeToStream('s', { fromRevision: 44n });
    const collecting = collect(subscription, 7);
    await client.appendToStream('s', [event(50), event(51)]);
    expect(await collecting).toEqual([45, 46, 47, 48, 49, 50, 51]);
  });

  test.each([
    ['stream prefixes', eventstore.streamNameFilter({ prefixes: ['a-', 'b-'] }), [0, 1, 3, 4]],
    ['a pattern of streams', eventstore.streamNameFilter({ regex: '^[bc]-' }), [1, 2, 4, 5]],
    ['a prefix of types', eventstore.eventTypeFilter({ prefixes: ['ev'] }), [0, 2, 4]],
    ['a pattern of types', eventstore.eventTypeFilter({ regex: 'd$' }), [1, 3, 5]],
  ])('filters a subscription to $all by %s', async (_, filter, expected) => {
    for (let n = 0; n < 6; n += 1)
      await client.appendToStream(`${['a', 'b', 'c'][n % 3]}-1`, event(n));
    expect(await collect(client.subscribeToAll({ filter }), expected.length)).toEqual(expected);
  });

  test('tells a filtered subscription how far it has looked, and when it has caught up', async () => {
    await client.appendToStream(
      'other',
      Array.from({ length: 70 }, (_, n) => event(n)),
    );
    const told: string[] = [];
    const filter = eventstore.streamNameFilter({
      prefixes: ['a-'],
      checkpointInterval: 1,
      checkpointReached: async () => void told.push('checkpoint'),
    });
    const subscription = client.subscribeToAll({ filter });
    const caughtUp = new Promise((resolve) => subscription.on('caughtUp', resolve));
    subscription.on('data', () => undefined);
    await caughtUp;
    expect(told).toEqual(['checkpoint', 'checkpoint']);
    await subscription.unsubscribe();
  });

  test('keeps its log and its port over a restart', async () => {
    await client.appendToStream('s', event(0));
    await node.stop();
    await node.start();
    // The client's library may at first take up the connection that broke; the adapter tries again.
    const store = await openEventStoreDb({ connectionString: node.connectionString });
    expect(await store.readStream('s', { direction: 'forwards', limit: 10 })).toMatchObject([
      { revision: 0, type: 'even' },
    ]);
    await store.close();
  });
});
