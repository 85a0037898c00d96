import { EventEmitter, getEventListeners } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, expect, test } from '@jest/globals';
import type { HostClient } from '../../../../infra/eventstoredb/clientInternals.ts';
import { collect } from '../../../../infra/eventstoredb/collect.ts';
import type { Connection, Connections } from '../../../../infra/eventstoredb/connection.ts';
import { createConnections } from '../../../../infra/eventstoredb/connections.ts';
import { openFeed } from '../../../../infra/eventstoredb/feed.ts';
import { readFromRequest } from '../../../../infra/eventstoredb/readRequests.ts';
import { createRetrying } from '../../../../infra/eventstoredb/retry.ts';
import { within } from '../../../../infra/eventstoredb/within.ts';
import { subscribeToAppends } from '../../../../infra/sqlite/eventStore/appendNotifier.ts';
import { createSessionQueue } from '../../../../shared/runs/queueing/sessionQueue.ts';
import { sleepUntilAborted, sleep } from '../../../../shared/lib/time/sleep.ts';
import { temporaryFolder } from '../../../support/sqlite/sqliteEventStore.ts';

const CALLS = 50;
/** Long-lived, as those of a process or of a connection are. */
const { signal } = new AbortController();
const folder = await temporaryFolder();
afterAll(() => rm(folder, { recursive: true }));

/** A read that the server answers with nothing, at once. */
class EmptyCall extends EventEmitter {
  readableLength = 0;
  constructor() {
    super();
    setImmediate(() => {
      this.emit('readable');
      this.emit('end');
    });
  }
  read = () => null;
  cancel = () => undefined;
}

const client = { read: async () => new EmptyCall() } as unknown as HostClient;
const connection: Connection = {
  client,
  lost: signal,
  heard: () => undefined,
  patienceMs: () => 1_000,
};
const feed = { after: undefined, requiresLeader: true, confirmationMs: 1_000, signal };
const connections = {
  current: async () => connection,
  allowed: () => undefined,
} as Partial<Connections> as Connections;
const retrying = createRetrying(connections, 60_000);
const seeking = createConnections('esdb://127.0.0.1:1?tls=false', undefined);
const log = join(folder, 'events.db');
await writeFile(log, '');
const news = subscribeToAppends(log);
const queue = createSessionQueue();
await queue.enter('session_1', 0, signal);
afterAll(() => {
  seeking.close();
  news.close();
});

test.each<[string, () => Promise<unknown>]>([
  ['a pause', () => sleep(1, signal)],
  ['a pause that an abort ends', () => sleepUntilAborted(1, { signal })],
  ['a call with a time limit', () => within(60_000, signal, async () => undefined)],
  [
    'a read',
    () =>
      collect(client, readFromRequest(undefined, 1), {
        requiresLeader: true,
        signal,
        heard: () => undefined,
      }),
  ],
  ['a subscription', () => openFeed(connection, feed)],
  [
    'a call that may be repeated',
    () => retrying({ kind: 'read', name: 'read' }, async () => undefined),
  ],
  ['a wait for the appends of others', () => news.wait(signal)],
  ['a wait in the queue of a session', () => queue.enter('session_1', 1, signal).catch(String)],
])('%s leaves no listener on a signal that outlives it', async (_what, call) => {
  await Promise.all(Array.from({ length: CALLS }, call));
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test('those who give up waiting for a connection leave no listener on the store', async () => {
  const waiting = Array.from({ length: CALLS }, async () => {
    const limit = new AbortController();
    setTimeout(() => limit.abort(new Error('too late')), 5);
    await expect(seeking.current(limit.signal)).rejects.toThrow('too late');
    expect(getEventListeners(limit.signal, 'abort')).toHaveLength(0);
  });
  const before = getEventListeners(seeking.closed, 'abort').length;
  await Promise.all(waiting);
  expect(before).toBeGreaterThanOrEqual(CALLS);
  expect(getEventListeners(seeking.closed, 'abort').length).toBeLessThan(CALLS);
});
