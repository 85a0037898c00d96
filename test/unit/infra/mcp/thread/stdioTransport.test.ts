import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { createInflow } from '../../../../../infra/mcp/thread/inflow.ts';
import { createStdioTransport } from '../../../../../infra/mcp/thread/stdioTransport.ts';
import { processOf, until } from '../../../../support/fakes/mcpGroups.ts';

type ProcessOptions = Parameters<typeof createStdioTransport>[0];

/** Starts a script as a server whose messages must end within `messageMs`. */
async function started(script: string, messageMs = 60_000) {
  const reasons: string[] = [];
  const inflow = createInflow((reason) => reasons.push(reason));
  const options = processOf('-e', script) as ProcessOptions;
  const transport = createStdioTransport(options, inflow, messageMs);
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

/** Writes the beginning of a long message, says so, and ends the message later. */
const longMessage = (endMs: number): string => `
  const text = 'x'.repeat(3.9 * 1024 * 1024);
  process.stdout.write('{"jsonrpc":"2.0","id":1,"result":{"text":"' + text, () => {
    process.stderr.write('written');
    setTimeout(() => process.stdout.write('"}}\\n'), ${endMs});
  });
  process.stdin.resume();
`;

test('long messages of several servers wait for each other', async () => {
  const script = longMessage(2_000);
  const servers = await Promise.all(Array.from({ length: 6 }, () => started(script)));
  await until(() => servers.some(({ messages }) => messages.length > 0), 30_000);
  const written = servers.filter(({ transport }) => transport.lastWords() === 'written');
  expect(written.length).toBeLessThan(6);
  await until(() => servers.every(({ messages }) => messages.length === 1), 30_000);
  expect(servers.flatMap(({ reasons }) => reasons)).toEqual([]);
  await Promise.all(servers.map(({ transport }) => transport.close()));
});

test('a server that does not end a long message is disconnected', async () => {
  const { transport, reasons } = await started(longMessage(60_000), 500);
  await until(() => reasons.length > 0);
  expect(reasons).toEqual(['it does not end a message']);
  await transport.close();
});

test('a server that has ended a long message may stay silent for longer', async () => {
  const messageMs = 3_000;
  const { transport, reasons, messages } = await started(longMessage(0), messageMs);
  await until(() => messages.length > 0);
  await sleep(messageMs + 500);
  expect(reasons).toEqual([]);
  await transport.close();
});
