import { EventEmitter } from 'node:events';
import { beforeEach, expect, test } from '@jest/globals';
import type { NodeConnection } from '../../../../../infra/eventstoredb/connection/connectionManager.ts';
import type { ReadResponse } from '../../../../../infra/eventstoredb/read/readResponse.ts';
import {
  openSubscriptionStream,
  type SubscriptionStream,
} from '../../../../../infra/eventstoredb/subscribe/subscriptionStream.ts';

/** Longer than a test may take. */
const LONG_MS = 600_000;

const calls: string[] = [];
let call: EventEmitter;
let stream: SubscriptionStream;

const eventOf = (commit: number, bytes = 2): ReadResponse => ({
  event: {
    id: `event-${commit}`,
    stream: 'session-s',
    revision: commit,
    commit,
    type: 'happened',
    isJson: true,
    data: '1'.repeat(bytes),
    metadata: '',
    bytes,
  },
});
const send = (...responses: ReadResponse[]): void =>
  responses.forEach((response) => call.emit('data', response));

beforeEach(async () => {
  calls.length = 0;
  call = Object.assign(new EventEmitter(), {
    pause: () => void calls.push('pause'),
    resume: () => void calls.push('resume'),
    cancel: () => void calls.push('cancel'),
  });
  const { signal: lost } = new AbortController();
  const connection = {
    client: { openRead: async () => call },
    lost,
    recordActivity: () => undefined,
    silenceLimitMs: () => LONG_MS,
  } as unknown as NodeConnection;
  const { signal } = new AbortController();
  const options = { after: undefined, requiresLeader: true, confirmationMs: LONG_MS, signal };
  const opening = openSubscriptionStream(connection, options);
  setImmediate(send, {});
  stream = await opening;
});

function takeAll(): number {
  let count = 0;
  while (stream.take()) count += 1;
  return count;
}

test('reads ahead while the consumer works, up to a limit of messages, and goes on at half of it', () => {
  for (let sent = 0; sent < 999; sent += 1) send(eventOf(sent));
  expect([stream.isBehind(), calls]).toEqual([true, []]);
  send(eventOf(999));
  expect(calls).toEqual(['pause']);
  for (let taken = 0; taken < 499; taken += 1) stream.take();
  expect(calls).toEqual(['pause']);
  stream.take();
  expect(calls).toEqual(['pause', 'resume']);
  expect(takeAll()).toBe(500);
  expect([stream.isEmpty(), stream.isBehind()]).toEqual([true, false]);
});

test('reads ahead up to a limit of bytes', () => {
  send(eventOf(1, 1_500_000));
  expect(calls).toEqual([]);
  send(eventOf(2, 1_500_000));
  expect(calls).toEqual(['pause']);
  expect(takeAll()).toBe(2);
  expect(calls).toEqual(['pause', 'resume']);
});

test.each(['id', 'type', 'stream'] as const)(
  'counts a long %s of an event in the bytes that are read ahead',
  (name) => {
    const { event } = eventOf(1);
    send({ event: { ...event!, [name]: 'x'.repeat(2_097_152) } });
    expect(calls).toEqual(['pause']);
  },
);

test('wakes its consumer once enough events have arrived, or another message than an event', async () => {
  const batch = stream.waitForMessages(LONG_MS, 3);
  let isAwake = false;
  void batch.then(() => (isAwake = true));
  send(eventOf(1), eventOf(2));
  await new Promise(setImmediate);
  expect(isAwake).toBe(false);
  send(eventOf(3));
  expect(await batch).toBe(true);
  takeAll();
  const live = stream.waitForMessages(LONG_MS, 3);
  send({ caughtUp: true });
  expect(await live).toBe(true);
  expect(stream.take()).toEqual({ kind: 'caught_up' });
  expect(await stream.waitForMessages(1)).toBe(false);
});

test('delivers what has arrived before it reports the end', async () => {
  send(eventOf(1));
  call.emit('error', new Error('the node is gone'));
  expect(takeAll()).toBe(1);
  await expect(stream.waitForMessages(LONG_MS)).rejects.toThrow('the node is gone');
});
