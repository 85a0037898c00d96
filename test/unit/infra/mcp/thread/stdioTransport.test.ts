import { expect, test } from '@jest/globals';
import { createInflow } from '../../../../../infra/mcp/thread/inflow.ts';
import { createStdioTransport } from '../../../../../infra/mcp/thread/stdioTransport.ts';
import { processOf, until } from '../../../../support/fakes/mcpGroups.ts';

type ProcessOptions = Parameters<typeof createStdioTransport>[0];

/** Starts a script as a server. */
async function started(script: string) {
  const reasons: string[] = [];
  const inflow = createInflow((reason) => reasons.push(reason));
  const transport = createStdioTransport(processOf('-e', script) as ProcessOptions, inflow);
  const messages: unknown[] = [];
  const { promise: closed, resolve: onclose } = Promise.withResolvers<void>();
  Object.assign(transport, { onclose, onmessage: (message: unknown) => messages.push(message) });
  await transport.start();
  return { transport, inflow, reasons, messages, closed };
}

/** What a transport passes on of lines that a process writes, and how many it takes for log messages. */
async function received(lines: readonly string[]) {
  const text = lines.map((line) => `${line}\n`).join('');
  const { messages, inflow, closed } = await started(
    `process.stdout.write(${JSON.stringify(text)})`,
  );
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

const openPipes = (): number =>
  process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
const before = openPipes();

test('the pipes of a server that has ended are closed, also where another process keeps them', async () => {
  // The child leaves the process group and outlives the server.
  const script = `
    require('node:child_process').spawn(process.execPath, ['-e', 'setTimeout(() => {}, 5000)'], {
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    process.stdout.write('{"a line without an end', () => process.exit());
  `;
  const { transport, closed } = await started(script);
  await closed;
  await transport.close();
  await until(() => openPipes() <= before, 3_000);
});
