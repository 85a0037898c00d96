import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from '@jest/globals';
import { createBoundedFetch } from '../../../../../infra/mcp/thread/boundedFetch.ts';
import { createInflow } from '../../../../../infra/mcp/thread/inflow.ts';
import { KIB, MIB } from '../../../../../shared/lib/units.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** Serves a URL. Each time `parallel` requests have come, all of them are answered. */
async function serve(parallel: number, answer: (response: ServerResponse) => void) {
  const responses: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    if (responses.push(response) % parallel === 0) responses.splice(0).forEach(answer);
  });
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** Answers with text whose last characters follow later. */
const answerSlowly = (bytes: number) => (response: ServerResponse) => {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.write('x'.repeat(bytes - 4));
  setTimeout(() => response.end('last'), 100);
};

/** The sizes of the answers, requested at once over the connections. */
async function sizesOf(url: string, connections: readonly number[], limitMs = 20_000) {
  const reasons: string[] = [];
  const sizes = connections.flatMap((calls) => {
    const fetch = createBoundedFetch(
      limitMs,
      createInflow((reason) => reasons.push(reason)),
    );
    return Array.from({ length: calls }, async () => {
      const response = await fetch(url, { method: 'POST', body: '{}' });
      return (await response.text()).length;
    });
  });
  return { sizes: await Promise.allSettled(sizes), reasons };
}

const all = (count: number, value: number) =>
  Array.from({ length: count }, () => ({ status: 'fulfilled', value }));

test.each([
  ['parallel calls of a server', [16], 400 * KIB],
  ['a server with large answers', [4], 3.5 * MIB],
  ['several servers with large answers', [1, 1, 1, 1], 3.9 * MIB],
] as const)('answers to %s wait for each other', async (_what, connections, size) => {
  const bytes = Math.floor(size);
  const count = connections.reduce((sum: number, calls) => sum + calls, 0);
  const url = await serve(count, answerSlowly(bytes));
  expect(await sizesOf(url, connections)).toEqual({ sizes: all(count, bytes), reasons: [] });
});

test('an answer waits no longer than its call may take', async () => {
  const url = await serve(4, (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.write('x'.repeat(3 * MIB));
  });
  const { sizes, reasons } = await sizesOf(url, [4], 2_000);
  expect(sizes.map(({ status }) => status)).toEqual(Array(4).fill('rejected'));
  expect(reasons).toEqual([]);
  // Their memory is free again.
  const next = await serve(4, answerSlowly(3 * MIB));
  expect((await sizesOf(next, [4])).sizes).toEqual(all(4, 3 * MIB));
});

const REQUEST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
const REPLY = { jsonrpc: '2.0', id: 1, result: {} };

test.each([
  ['POST', 200, 'text/event-stream', REQUEST, undefined],
  ['POST', 200, 'Text/Event-Stream; charset=utf-8', REQUEST, undefined],
  ['GET', 200, 'application/json', undefined, undefined],
  // The library keeps the whole text of these.
  ['POST', 200, 'text/event-streams', REQUEST, 'too long'],
  ['POST', 200, 'text/event-stream;a,b', REQUEST, 'too long'],
  ['POST', 200, 'text/event-stream', REPLY, 'too long'],
  ['POST', 202, 'text/event-stream', REQUEST, 'too long'],
  ['POST', 500, 'text/event-stream', REQUEST, 'too long'],
  ['GET', 500, 'text/event-stream', undefined, 'too long'],
] as const)('a %s answered with %i %s %j', async (...args) => {
  const [method, status, type, message, reason] = args;
  const url = await serve(1, (response) => {
    response.writeHead(status, { 'content-type': type });
    response.end(`data: ${'x'.repeat(1.5 * MIB)}\n\n`.repeat(3));
  });
  const reasons: string[] = [];
  const fetch = createBoundedFetch(
    5_000,
    createInflow((text) => reasons.push(text)),
  );
  const response = await fetch(url, { method, ...(message && { body: JSON.stringify(message) }) });
  await response.text().catch(() => undefined);
  expect(reasons).toEqual(reason === undefined ? [] : [expect.stringContaining(reason)]);
});

test.each([
  ['messages of a batch', `[${Array(5_000).fill('{"a":[1,2]}').join()}]`, 'too many messages'],
  ['members of one message', `{"a":[${Array(5_000).fill('{"a":[1,2]}').join()}]}`, undefined],
])('the %s in a response are counted like messages: %#', async (_what, body, reason) => {
  const url = await serve(1, (response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(body);
  });
  const reasons: string[] = [];
  const fetch = createBoundedFetch(
    5_000,
    createInflow((text) => reasons.push(text)),
  );
  const read = fetch(url, { method: 'POST', body: '{}' }).then((response) => response.text());
  await read.catch(() => undefined);
  expect(reasons).toEqual(reason === undefined ? [] : [expect.stringContaining(reason)]);
});
