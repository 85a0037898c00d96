/** How long calls wait for a store that is away: together for one request, and not at all once it is known. */
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { StoreAwayError } from '../../../infra/eventstoredb/connection/connectionManager.ts';
import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import { withWaitBudget } from '../../../shared/lib/time/waitBudget.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import { newEvents, newStream, untilAnswered } from '../../contracts/eventStore/support.ts';
import {
  startEventStoreDbCluster,
  startEventStoreDbNode,
} from '../../support/servers/eventstoredb-node/index.ts';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

/** Longer than a test may take: a call that waits for its own deadline fails the test. */
const BEYOND_THE_TEST_MS = 600_000;

let folder: string;
const stack: Array<() => unknown> = [];
beforeEach(async () => {
  folder = await temporaryFolder();
  stack.push(() => rm(folder, { recursive: true }));
});
afterEach(async () => {
  for (const clean of stack.splice(0).toReversed()) await clean();
});

async function open(connectionString: string, deadlineMs: number): Promise<EventStore> {
  const store = await openEventStoreDb({ connectionString, deadlineMs });
  stack.push(store.close);
  return store;
}

async function startNode() {
  const node = await startEventStoreDbNode({ folder });
  stack.push(node.close);
  return node;
}

const untilTrouble = (store: EventStore, pattern: RegExp): Promise<unknown> =>
  eventually(
    () => Promise.resolve(store.trouble()),
    (trouble) => pattern.test(trouble ?? ''),
  );

/** The message at the end of the chain of causes. */
const rootCause = (thrown: unknown): unknown =>
  thrown instanceof Error && thrown.cause !== undefined
    ? rootCause(thrown.cause)
    : thrown instanceof Error && thrown.message;

const append = (store: EventStore): Promise<unknown> =>
  store.append(newStream(), 'no_stream', newEvents(1));

describe('a cluster that is known to have no quorum', () => {
  test('fails calls at once, those that wait as well, and serves again when the quorum is back', async () => {
    const cluster = await startEventStoreDbCluster({ folder, size: 3 });
    stack.push(cluster.close);
    const store = await open(cluster.connectionString, BEYOND_THE_TEST_MS);
    await append(store);
    const [first, second] = cluster.nodes;
    await Promise.all([first?.stop(), second?.stop()]);
    const noQuorum = {
      code: 'store_unavailable',
      cause: { message: expect.stringMatching(/no quorum: only 1 of its 3 nodes is alive/) },
    };
    await expect(append(store)).rejects.toMatchObject(noQuorum);
    await untilTrouble(store, /no quorum/);
    await expect(append(store)).rejects.toMatchObject(noQuorum);
    await expect(store.head()).rejects.toMatchObject(noQuorum);

    await Promise.all([first?.start(), second?.start()]);
    await untilAnswered(() => append(store));
    expect(store.trouble()).toBeUndefined();
  });

  test('is waited for while it only elects a leader', async () => {
    const cluster = await startEventStoreDbCluster({ folder, size: 3 });
    stack.push(cluster.close);
    const store = await open(cluster.connectionString, BEYOND_THE_TEST_MS);
    await append(store);
    cluster.elect(-1);
    cluster.nodes[0]?.dropConnections();
    await untilTrouble(store, /no leader at the moment/);
    const waiting = append(store);
    cluster.elect(1);
    await waiting;
  });
});

test('a node that was away for longer than a call waits fails calls at once', async () => {
  const node = await startNode();
  const store = await open(node.connectionString, 500);
  await append(store);
  await node.stop();
  await untilTrouble(store, /refuses connections/);
  const isKnown = (thrown: unknown): boolean =>
    thrown instanceof Error && thrown.cause instanceof Error
      ? thrown.cause.cause instanceof StoreAwayError
      : false;
  await eventually(
    () =>
      append(store).then(
        () => undefined,
        (thrown: unknown) => thrown,
      ),
    isKnown,
  );
  await node.start();
  await untilAnswered(() => append(store));
});

test('the calls of one request share its limit', async () => {
  const node = await startNode();
  const store = await open(node.connectionString, BEYOND_THE_TEST_MS);
  await append(store);
  node.faults.silent = true;
  const away = { code: 'store_unavailable' };
  await withWaitBudget(
    300,
    () => true,
    async () => {
      await expect(append(store)).rejects.toMatchObject(away);
      const thrown: unknown = await store.head().catch((error: unknown) => error);
      expect(thrown).toMatchObject(away);
      expect(rootCause(thrown)).toBe('the request has waited for its whole time');
    },
  );
  node.faults.silent = false;
  await untilAnswered(() => append(store));
});
