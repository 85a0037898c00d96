import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { idsOf, newEvents, newStream, readAll } from '../../contracts/eventStore/support.ts';
import {
  startEventStoreDbCluster,
  startEventStoreDbNode,
  type EventStoreDbCluster,
} from '../../support/servers/eventstoredb-node/index.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

describe('a cluster', () => {
  let folder: string;
  let cluster: EventStoreDbCluster;
  beforeEach(async () => {
    folder = await temporaryFolder();
    cluster = await startEventStoreDbCluster({ folder, size: 3 });
  });
  afterEach(async () => {
    await cluster.close();
    await rm(folder, { recursive: true });
  });

  /** Counts the appends that reach each node. */
  function countAppends(): number[] {
    const counts = cluster.nodes.map(() => 0);
    cluster.nodes.forEach((node, index) => {
      node.faults.onAppend = () => {
        counts[index] = (counts[index] ?? 0) + 1;
        return 'none';
      };
    });
    return counts;
  }

  async function withStore(
    connectionString: string,
    use: (store: EventStore) => Promise<void>,
  ): Promise<void> {
    const store = await openEventStoreDb({ connectionString });
    try {
      await use(store);
    } finally {
      await store.close();
    }
  }

  test('is discovered through one node: esdb+discover finds the leader', async () => {
    cluster.elect(2);
    const counts = countAppends();
    const [first] = cluster.nodes;
    await withStore(`esdb+discover://${first?.host}:${first?.port}?tls=false`, async (store) => {
      await store.append(newStream(), 'no_stream', newEvents(1));
    });
    expect(counts).toEqual([0, 0, 1]);
  });

  test('keeps appends in flight when another leader is elected', async () => {
    const counts = countAppends();
    await withStore(cluster.connectionString, async (store) => {
      const writers = Array.from({ length: 10 }, () => ({
        stream: newStream(),
        events: newEvents(20),
      }));
      const writing = writers.map(async ({ stream, events }, writer) => {
        for (const [index, event] of events.entries()) {
          if (writer === 0 && index === 10) cluster.elect(1);
          await store.append(stream, index === 0 ? 'no_stream' : index - 1, [event]);
        }
      });
      await Promise.all(writing);
      for (const { stream, events } of writers)
        expect(idsOf(await readAll(store, stream))).toEqual(idsOf(events));
    });
    expect(counts.slice(0, 2).every((count) => count > 0)).toBe(true);
  });

  test('serves when its leader is lost', async () => {
    await withStore(cluster.connectionString, async (store) => {
      const stream = newStream();
      const events = newEvents(2);
      await store.append(stream, 'no_stream', events.slice(0, 1));
      await cluster.nodes[0]?.stop();
      cluster.elect(2);
      await store.append(stream, 0, events.slice(1));
      expect(idsOf(await readAll(store, stream))).toEqual(idsOf(events));
    });
  });

  test('serves from another node when the connection string prefers it', async () => {
    const counts = countAppends();
    await withStore(`${cluster.connectionString}&nodePreference=follower`, async (store) => {
      await store.append(newStream(), 'no_stream', newEvents(1));
    });
    expect(counts[0]).toBe(0);
  });
});

describe('a node with TLS and credentials', () => {
  test('accepts the credentials of the connection string, and rejects wrong ones at once', async () => {
    const folder = await temporaryFolder();
    const node = await startEventStoreDbNode({ folder, credentials: 'admin:changeit', tls: true });
    const store = await openEventStoreDb({ connectionString: node.connectionString });
    const unauthorized = await openEventStoreDb({
      connectionString: node.connectionString.replace('changeit', 'guess'),
    });
    try {
      const stream = newStream();
      await store.append(stream, 'no_stream', newEvents(1));
      expect(await readAll(store, stream)).toHaveLength(1);
      const attempts = [
        unauthorized.append(stream, 0, newEvents(1)),
        readAll(unauthorized, stream),
      ];
      for (const attempt of attempts)
        await expect(attempt).rejects.toMatchObject({
          code: 'store_unavailable',
          message: 'The event store refuses the credentials.',
        });
    } finally {
      await store.close();
      await unauthorized.close();
      await node.close();
      await rm(folder, { recursive: true });
    }
  });
});
