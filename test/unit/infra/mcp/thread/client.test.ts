import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from '@jest/globals';
import { createMcpClient, type McpClient } from '../../../../../infra/mcp/thread/client.ts';
import { KIB } from '../../../../../shared/lib/units.ts';
import { serverWith, until } from '../../../../support/fakes/mcpGroups.ts';

/** On a busy machine, hundreds of requests take some seconds. */
const WAIT_MS = 30_000;

const closing: (() => Promise<void>)[] = [];
let isStreamOpen: boolean;
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

/** Connects to a server that sends pings with these ids, and answers replies with `onReply`. */
async function connect(ids: readonly string[], onReply: (response: ServerResponse) => void) {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method === 'GET') {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      isStreamOpen = true;
      response.once('close', () => (isStreamOpen = false));
      for (const id of ids)
        response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' })}\n\n`);
      return;
    }
    const message = JSON.parse(await text(request)) as { id?: unknown; method?: string };
    if (message.method === undefined) return onReply(response);
    if (message.method !== 'initialize') return void response.writeHead(202).end();
    const serverInfo = { name: 'pings', version: '1' };
    const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ jsonrpc: '2.0', id: message.id, result }));
  }
  const server = createServer((request, response) => void answer(request, response));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const reasons: string[] = [];
  const client: McpClient = createMcpClient(serverWith({ kind: 'http', url, headers: {} }), '1', {
    onChanged: () => undefined,
    onClosed: (reason) => reasons.push(reason),
  });
  closing.push(async () => {
    server.closeAllConnections();
    server.close();
    await client.close();
  });
  await client.open(new AbortController().signal);
  return reasons;
}

const numbered = (count: number, chars: number) =>
  Array.from({ length: count }, (_, n) => `${n}`.padEnd(chars, 'x'));

test('requests of a server are answered', async () => {
  let replies = 0;
  const reasons = await connect(numbered(150, KIB), (response) => {
    replies += 1;
    response.writeHead(202).end();
  });
  await until(() => replies === 150, WAIT_MS);
  expect(reasons).toEqual([]);
}, 60_000);

test('a server that lets too many replies wait is disconnected', async () => {
  const waiting: ServerResponse[] = [];
  const reasons = await connect(numbered(300, KIB), (response) => waiting.push(response));
  await until(() => reasons.length > 0, WAIT_MS);
  expect(reasons[0]).toBe('it does not accept replies to its requests');
  expect(waiting.length).toBeLessThan(250);
}, 60_000);

test('a server whose request has too long an id is disconnected', async () => {
  let replies = 0;
  const reasons = await connect(numbered(1, KIB + 1), () => (replies += 1));
  await until(() => reasons.length > 0, WAIT_MS);
  expect([reasons[0], replies]).toEqual(['it sent a request with too long an id', 0]);
  await until(() => !isStreamOpen, WAIT_MS);
}, 60_000);
