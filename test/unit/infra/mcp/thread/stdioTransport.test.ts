import { expect, test } from '@jest/globals';
import { createInflow } from '../../../../../infra/mcp/thread/inflow.ts';
import { createStdioTransport } from '../../../../../infra/mcp/thread/stdioTransport.ts';
import { processOf } from '../../../../support/fakes/mcpGroups.ts';

type ProcessOptions = Parameters<typeof createStdioTransport>[0];

/** What a transport passes on of lines that a process writes, and how many it takes for log messages. */
async function received(lines: readonly string[]) {
  const script = `process.stdout.write(${JSON.stringify(lines.map((line) => `${line}\n`).join(''))})`;
  const inflow = createInflow(() => undefined);
  const transport = createStdioTransport(processOf('-e', script) as ProcessOptions, inflow);
  const messages: unknown[] = [];
  const { promise: closed, resolve: onclose } = Promise.withResolvers<void>();
  Object.assign(transport, { onclose, onmessage: (message: unknown) => messages.push(message) });
  await transport.start();
  await closed;
  return { messages, discarded: inflow.discardedLogs() };
}

test.each([
  '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}',
  '{"method":"notifications/message","params":{},"jsonrpc":"2.0"}',
  ' { "jsonrpc" : "2.0" , "method" : "notifications/message" , "params" : { } } ',
])('a log message is discarded: %s', async (line) => {
  expect(await received([line])).toEqual({ messages: [], discarded: 1 });
});

test.each([
  { jsonrpc: '2.0', id: 1, result: { a: 'notifications/message' } },
  { jsonrpc: '2.0', id: 1, result: { method: 'notifications/message' } },
  { result: { method: 'notifications/message' }, jsonrpc: '2.0', id: 1 },
  { jsonrpc: '2.0', id: 1, result: { text: '{"jsonrpc":"2.0","method":"notifications/message"' } },
])('a response is not, whatever it holds: %j', async (response) => {
  const { messages, discarded } = await received([JSON.stringify(response)]);
  expect(messages).toEqual([response]);
  expect(discarded).toBe(0);
});
