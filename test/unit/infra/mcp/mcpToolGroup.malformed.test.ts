import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { afterEach, expect, test } from '@jest/globals';
import {
  closeGroups,
  hostileServer,
  openGroup,
  serverWith,
  until,
} from '../../../support/fakes/mcpGroups.ts';

afterEach(closeGroups);

const calling = { account_id: 'a', signal: new AbortController().signal };

test('a malformed tool is left out alone, and the log and health name it', async () => {
  const warnings: Record<string, unknown>[] = [];
  const group = openGroup(serverWith(hostileServer('malformed')), (line) =>
    warnings.push(line as Record<string, unknown>),
  );
  const tools = await group.known();
  expect(tools.map(({ name }) => name)).toEqual(['act']);
  await until(() => group.health().state === 'up');
  const problems = [
    '"bad" is not offered: its inputSchema is not valid',
    '"number 3" is not offered: its name is not valid',
    '"number 4" is not offered: it is not an object',
    '"described" is not offered: its description is not valid',
    '"odd" is not offered: its inputSchema is not valid',
  ];
  expect(group.health()).toEqual({ name: 'files', state: 'up', tools: 1, problems });
  expect(warnings).toEqual([
    expect.objectContaining({ server: 'files', count: 5, refused: problems.join('; ') }),
  ]);
});

test('a malformed item of an answer is replaced alone, and the log and health name its tool until it answers as it should', async () => {
  const warnings: unknown[] = [];
  const group = openGroup(serverWith(hostileServer('plain')), (line) => warnings.push(line));
  await group.known();
  await until(() => group.health().state === 'up');
  const invalid = '[content that is not valid]';
  for (let nth = 0; nth < 2; nth += 1)
    expect(await group.call('act', '{"what":"malformed"}', calling)).toEqual({
      result: ['one', invalid, invalid, invalid, invalid, 'two'].join('\n'),
      is_error: false,
    });
  expect(group.health()).toMatchObject({
    state: 'up',
    problems: ['4 of the items in the last answer of "act" are not valid'],
  });
  expect(warnings).toEqual([{ server: 'files', tool: 'act', items: 4 }]);
  expect(await group.call('act', '{"what":""}', calling)).toEqual({
    result: 'called act',
    is_error: false,
  });
  expect(group.health()).toEqual({ name: 'files', state: 'up', tools: 1 });
});

const JSON_TYPE = { 'content-type': 'application/json' };
const INITIALIZED = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'files', version: '1' },
};
const LISTED = { tools: [{ name: 'act', inputSchema: { type: 'object' } }] };

test.each([
  ['an error status', 500, 'secret', ' (HTTP status 500)'],
  ['a status for other credentials', 401, 'secret', ' (HTTP status 401)'],
  ['what is no message', 200, '{"jsonrpc":"2.0","id":2,"result":"secret"}', ''],
  ['what is no JSON', 200, '{', ''],
])('a call that is answered with %s says so', async (_, status, body, named) => {
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method } = (await json(request)) as { id?: number; method: string };
    if (id === undefined) return void response.writeHead(202).end();
    if (method === 'tools/call') return void response.writeHead(status, JSON_TYPE).end(body);
    const result = method === 'initialize' ? INITIALIZED : LISTED;
    return void response
      .writeHead(200, JSON_TYPE)
      .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
  }
  const server = createServer((...exchange) => void answer(...exchange)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  const group = openGroup(serverWith({ kind: 'http', url, headers: {} }));
  await group.known();
  await until(() => group.health().state === 'up');
  expect(await group.call('act', '{}', calling)).toEqual({
    result: `The server’s answer is not valid${named}. Whether it did something is not known.`,
    is_error: true,
  });
  server.close();
  server.closeAllConnections();
});
