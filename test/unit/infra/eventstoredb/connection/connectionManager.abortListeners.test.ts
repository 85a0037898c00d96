import { EventEmitter, getEventListeners } from 'node:events';
import { afterAll, expect, test } from '@jest/globals';
import type { HostClient } from '../../../../../infra/eventstoredb/connection/hostClient.ts';
import { createCallWithRetry } from '../../../../../infra/eventstoredb/connection/callRetry.ts';
import {
  createConnectionManager,
  type ConnectionManager,
  type NodeConnection,
} from '../../../../../infra/eventstoredb/connection/connectionManager.ts';
import {
  buildTurnlogEventsRequest,
  readAll,
} from '../../../../../infra/eventstoredb/read/readAll.ts';
import { openSubscriptionStream } from '../../../../../infra/eventstoredb/subscribe/subscriptionStream.ts';
import {
  countAppends,
  subscribeToAppends,
} from '../../../../../infra/sqlite/eventStore/appendNotifier.ts';
import { createSessionQueue } from '../../../../../shared/runs/queueing/sessionQueue.ts';
import { sleepUntilAborted, sleep } from '../../../../../shared/lib/time/sleep.ts';
import { withDeadline } from '../../../../../shared/lib/time/withDeadline.ts';

const CALLS = 50;
/** Long-lived, like the signals of a process or a connection. */
const { signal } = new AbortController();

/** A read with an immediate empty answer. */
class EmptyCall extends EventEmitter {
  constructor() {
    super();
    setImmediate(() => {
      this.emit('data', {});
      this.emit('end');
    });
  }
  cancel = () => undefined;
}

const client = { openRead: async () => new EmptyCall() } as unknown as HostClient;
const connection: NodeConnection = {
  client,
  lost: signal,
  recordActivity: () => undefined,
  silenceLimitMs: () => 1_000,
};
const subscription = { after: undefined, requiresLeader: true, confirmationMs: 1_000, signal };
const connections = {
  current: async () => connection,
  recordAllowed: () => undefined,
} as Partial<ConnectionManager> as ConnectionManager;
const callWithRetry = createCallWithRetry(connections, 60_000);
const unconnected = createConnectionManager('esdb://127.0.0.1:1?tls=false', undefined, 60_000);

const news = subscribeToAppends();
const queue = createSessionQueue();
await queue.acquire('session_1', 0, signal);
afterAll(() => {
  unconnected.close();
  news.close();
});

test.each<[string, () => Promise<unknown>]>([
  ['a pause', () => sleep(1, signal)],
  ['a pause that an abort ends', () => sleepUntilAborted(1, { signal })],
  ['a call with a time limit', () => withDeadline(60_000, signal, async () => undefined)],
  [
    'a read',
    () =>
      readAll(client, buildTurnlogEventsRequest(undefined, 1), {
        requiresLeader: true,
        signal,
        onActivity: () => undefined,
      }),
  ],
  ['a subscription', () => openSubscriptionStream(connection, subscription)],
  [
    'a call with retries',
    () => callWithRetry({ kind: 'read', description: 'read' }, async () => undefined),
  ],
  ['a wait for the appends of others', () => news.wait(countAppends(), signal)],
  ['a wait in the queue of a session', () => queue.acquire('session_1', 1, signal).catch(String)],
])('%s leaves no listener on a signal that outlives it', async (_what, call) => {
  await Promise.all(Array.from({ length: CALLS }, call));
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

test('a call that stops waiting for a connection leaves no listener on the store', async () => {
  const waiting = Array.from({ length: CALLS }, async () => {
    const limit = new AbortController();
    setTimeout(() => limit.abort(new Error('too late')), 5);
    await expect(unconnected.current(limit.signal)).rejects.toThrow('too late');
    expect(getEventListeners(limit.signal, 'abort')).toHaveLength(0);
  });
  const before = getEventListeners(unconnected.closed, 'abort').length;
  await Promise.all(waiting);
  expect(before).toBeGreaterThanOrEqual(CALLS);
  expect(getEventListeners(unconnected.closed, 'abort').length).toBeLessThan(CALLS);
});
