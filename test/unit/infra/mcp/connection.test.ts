import { MessageChannel } from 'node:worker_threads';
import { expect, test } from '@jest/globals';
import { connectMcp } from '../../../../infra/mcp/connection.ts';
import type { ThreadReport, ThreadRequest } from '../../../../infra/mcp/messages.ts';
import { createMcpThread, type McpThread } from '../../../../infra/mcp/mcpThread.ts';
import { processOf, serverWith, until } from '../../../support/fakes/mcpGroups.ts';

const { signal } = new AbortController();

/** A connection to a thread. `onCall` returns the reports of the thread for a call of a tool. */
async function connectTo(onCall: (id: number) => ThreadReport[]) {
  const { port1: port, port2 } = new MessageChannel();
  const report = (what: ThreadReport): void => port2.postMessage(what);
  let closed = false;
  port2.on('message', (request: ThreadRequest) => {
    if (request.op === 'open') report({ id: request.id, reply: undefined });
    if (request.op === 'call') onCall(request.id).forEach(report);
    if (request.op !== 'close') return;
    closed = true;
    port2.close();
  });
  const thread: McpThread = {
    ...createMcpThread(),
    connect: () => ({
      port,
      ended: new Promise(() => undefined),
      terminate: () => undefined,
      release: () => undefined,
    }),
  };
  const connection = await connectMcp(serverWith(processOf()), { version: '1', thread, signal });
  return { connection, report, isClosed: () => closed };
}

const closedAs = (kind: 'forgotten' | 'lost'): ThreadReport => ({
  event: 'closed',
  kind,
  reason: 'over',
  discardedLogs: 0,
});

test('a call that meets the loss of its connection is lost like it', async () => {
  const { connection } = await connectTo(() => [closedAs('lost')]);
  await expect(connection.callTool('act', '{}', signal)).rejects.toMatchObject({ kind: 'lost' });
  await connection.close();
});

test('a call in flight to a forgotten session keeps its outcome, for which the connection stays', async () => {
  const ids: number[] = [];
  const { connection, report, isClosed } = await connectTo((id) => {
    ids.push(id);
    return [closedAs('forgotten')];
  });
  const events: string[] = [];
  connection.watch((event) => events.push(event));
  const call = connection.callTool('act', '{}', signal);
  await until(() => events.length > 0);
  expect([events, connection.end()?.kind]).toEqual([['closed'], 'forgotten']);
  await expect(connection.callTool('act', '{}', signal)).rejects.toMatchObject({
    kind: 'forgotten',
  });
  const closing = connection.closeAfterCalls();
  expect([ids.length, isClosed()]).toEqual([1, false]);
  report({ id: ids[0]!, reply: { result: 'done', is_error: false, invalidItems: 0 } });
  expect((await call).result).toBe('done');
  await closing;
  expect(isClosed()).toBe(true);
});

test('a connection of a forgotten session that is lost has its calls lost', async () => {
  const { connection } = await connectTo(() => [closedAs('forgotten'), closedAs('lost')]);
  await expect(connection.callTool('act', '{}', signal)).rejects.toMatchObject({ kind: 'lost' });
  await connection.closeAfterCalls();
});
