import type { MessagePort } from 'node:worker_threads';
import { afterEach, expect, test } from '@jest/globals';
import { connectMcp } from '../../../../infra/mcp/connection.ts';
import { createMcpThread, type McpThread } from '../../../../infra/mcp/mcpThread.ts';
import { HOSTILE, processOf, serverWith } from '../../../support/fakes/mcpGroups.ts';

const thread = createMcpThread();
const plain = serverWith(processOf(HOSTILE, 'plain'));
/** Throws in the thread, outside of any promise. */
const failing = serverWith({ kind: 'http', url: 'no URL', headers: {} });
const { signal } = new AbortController();
const connect = (server = plain) => connectMcp(server, { version: '1', thread, signal });

const opened: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const { close } of opened.splice(0)) await close();
});

test('a thread that fails ends its connections and requests, and the next one has another', async () => {
  const connection = await connect();
  opened.push(connection);
  const events: string[] = [];
  connection.watch((event) => events.push(event));
  const call = connection.callTool('act', '{"what":"hang"}', signal);
  const place = thread.connect(failing, '1');
  await expect(call).rejects.toMatchObject({ kind: 'lost', reason: 'its thread has ended' });
  expect(await place.ended).toBe('its thread has ended');
  place.release();
  expect(connection.end()).toEqual({
    kind: 'lost',
    reason: 'its thread has ended',
    discardedLogs: 0,
  });
  expect(events).toEqual(['closed']);
  await connection.close();
  const next = await connect();
  opened.push(next);
  const described = await next.listTools(() => true, signal);
  expect(described!.tools.map(({ name }) => name)).toEqual(['act']);
});

test('listings of several servers at a time, as large as they may be, fit into the thread', async () => {
  const large = serverWith(processOf(HOSTILE, 'many-values'));
  const lists = await Promise.all(
    Array.from({ length: 4 }, async () => {
      const connection = await connect(large);
      opened.push(connection);
      return connection.listTools(() => true, signal);
    }),
  );
  expect(lists.map((list) => list?.tools.length)).toEqual([8, 8, 8, 8]);
});

test('a connection does not keep the process alive', async () => {
  let port: MessagePort | undefined;
  const watched: McpThread = {
    ...thread,
    connect(...args) {
      const place = thread.connect(...args);
      ({ port } = place);
      return place;
    },
  };
  opened.push(await connectMcp(plain, { version: '1', thread: watched, signal }));
  expect(port!.hasRef()).toBe(false);
});
