import { expect, test } from '@jest/globals';
import { createUnfinishedMessages } from '../../../../../infra/mcp/thread/unfinishedMessages.ts';

const { signal } = new AbortController();

/** Follows which of the promises have settled. */
async function settled(promises: readonly Promise<void>[]): Promise<unknown[]> {
  const states: unknown[] = promises.map(() => 'waits');
  for (const [at, promise] of promises.entries())
    promise.then(
      () => (states[at] = 'fits'),
      (error: Error) => (states[at] = error.message),
    );
  await new Promise((resolve) => setImmediate(resolve));
  return states;
}

test('messages wait for each other to end, but not all of them', async () => {
  const hold = createUnfinishedMessages(100);
  const messages = ['a', 'b', 'c', 'd'].map((connection) => hold(connection));
  const grow = (bytes: number) => messages.map((message) => message.resize(bytes, signal));
  const growing = grow(45);
  expect(await settled(growing)).toEqual(['fits', 'fits', 'waits', 'waits']);
  // The second one exceeded the share of its connection: others wait for it, too.
  messages[1]!.release();
  expect(await settled(growing)).toEqual(['fits', 'fits', 'fits', 'waits']);
  await messages[2]!.resize(1, signal);
  expect(await settled(growing)).toEqual(['fits', 'fits', 'fits', 'fits']);
});

test('a message that is no longer counted leaves its memory to others', async () => {
  const hold = createUnfinishedMessages(100);
  const [a, b, c, d] = ['a', 'b', 'c', 'd'].map((connection) => hold(connection));
  const held = [a!.resize(45, signal), b!.resize(25, signal), c!.resize(10, signal)];
  expect(await settled(held)).toEqual(['fits', 'fits', 'fits']);
  expect(await settled([c!.resize(40, signal)])).toEqual(['fits']);
  expect(await settled([d!.resize(15, signal)])).toEqual(['fits']);
});

test('a connection that holds its share leaves memory to another', async () => {
  const hold = createUnfinishedMessages(100);
  const messages = Array.from({ length: 4 }, () => hold('a'));
  const held = messages.map((message) => message.resize(25, signal));
  expect(await settled(held)).toEqual(['fits', 'fits', 'fits', 'waits']);
  expect(await settled([hold('b').resize(25, signal)])).toEqual(['fits']);
});

test('a wait ends with its signal or its response, and frees what was held', async () => {
  const hold = createUnfinishedMessages(100);
  const stopping = new AbortController();
  const messages = Array.from({ length: 5 }, () => hold('a'));
  const held = messages.map((message) => message.resize(50, stopping.signal));
  expect(await settled(held)).toEqual(['fits', 'fits', 'waits', 'waits', 'waits']);
  messages[2]!.release();
  stopping.abort(new Error('cancelled'));
  expect(await settled(held)).toEqual([
    'fits',
    'fits',
    'the response has ended',
    'cancelled',
    'cancelled',
  ]);
  for (const message of messages) message.release();
  const again = [hold('a'), hold('a')].map((message) => message.resize(50, signal));
  expect(await settled(again)).toEqual(['fits', 'fits']);
});

test('one message may take half of the memory', async () => {
  const message = createUnfinishedMessages(100)('a');
  expect(await settled([message.resize(50, signal)])).toEqual(['fits']);
  expect(await settled([message.resize(51, signal)])).toEqual(['the server sends too much']);
});
