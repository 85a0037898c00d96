import { expect, test } from '@jest/globals';
import { connectMcp } from '../../../../../infra/mcp/connection.ts';
import { createMcpThread } from '../../../../../infra/mcp/mcpThread.ts';
import { serverWith, until } from '../../../../support/fakes/mcpGroups.ts';
import { startForgetfulServer } from '../../../../support/servers/forgetfulMcpServer.ts';

const { signal } = new AbortController();

test('after a forgotten session no call is sent, and calls in flight keep their own outcomes', async () => {
  const server = await startForgetfulServer();
  const connection = await connectMcp(serverWith(server.transport), {
    version: '1',
    thread: createMcpThread(),
    signal,
  });
  const events: string[] = [];
  connection.watch((event) => events.push(event));
  const call = (nth: number) =>
    connection.callTool('act', JSON.stringify({ nth }), signal).then(
      ({ result }) => result,
      ({ kind }: { kind: string }) => kind,
    );
  const calls = [1, 2, 3, 4].map(call);
  await until(() => server.calls().length === 4);
  server.forget(1);
  expect(await calls[0]).toBe('forgotten');
  expect(await call(5)).toBe('forgotten');
  expect(events).toEqual(['closed']);
  expect(connection.end()).toMatchObject({ reason: 'it has forgotten the session' });
  server.forget(2);
  server.disconnect(3);
  expect(await Promise.all(calls.slice(1, 3))).toEqual(['forgotten', 'lost']);
  server.answer(4);
  expect(await calls[3]).toBe('answer 4');
  expect(events).toEqual(['closed']);
  expect(server.calls()).toHaveLength(4);
  await connection.close();
  server.close();
});
