import { afterEach, beforeEach, expect, jest, test } from '@jest/globals';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { APIError } from 'openai/core/error';
import { Agent } from 'undici';
import { openProvider, type OpenProvider } from '../../../../infra/openai/openProvider.ts';
import { sendRequest } from '../../../../infra/openai/providerRequest.ts';
import { createMemoryLedger } from '../../../../shared/lib/memory/ledger.ts';

const POST = { method: 'POST', path: '/chat/completions', body: Buffer.from('{"a":1}') } as const;
const caller = { account_id: 'a' };
const limits = { attemptTimeoutMs: 30_000, maxRetries: 1 };

let respond: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
const server = createServer((request, response) => void respond(request, response));
let agent: Agent;
let provider: OpenProvider;
beforeEach(async () => {
  agent = new Agent();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const base_url = `http://127.0.0.1:${port}/v1?flag&of=a+b`;
  const connection = { agent, ledger: createMemoryLedger() };
  provider = openProvider({ id: 'p', base_url, api_key: 'k' }, limits, connection);
});
afterEach(async () => {
  await agent.destroy();
  server.close();
  await once(server, 'close');
});

test('an attempt that the library repeats sends the same request', async () => {
  const received: unknown[] = [];
  respond = async (request, response) => {
    const { method, url, rawHeaders } = request;
    received.push({ method, url, rawHeaders, body: await text(request) });
    response.setHeader('retry-after-ms', '1');
    response.setHeader('content-type', 'application/json');
    response.writeHead(received.length === 1 ? 500 : 200).end('{"b":2}');
  };
  const { signal } = new AbortController();
  expect(await sendRequest(provider, POST, { caller, signal })).toEqual({ b: 2 });
  expect(received[1]).toEqual(received[0]);
  expect(received).toMatchObject([
    { method: 'POST', url: '/v1/chat/completions?flag&of=a+b', body: '{"a":1}' },
    {},
  ]);
});

test('a call that is cancelled does not load the library', async () => {
  const cancelling = new AbortController();
  respond = async () => cancelling.abort(new Error('cancelled'));
  const client = jest.fn(provider.client);
  const call = { caller, signal: cancelling.signal };
  await expect(sendRequest({ ...provider, client }, POST, call)).rejects.toThrow('cancelled');
  expect(client).not.toHaveBeenCalled();
});

const deep = `${'{"a":'.repeat(9_000)}1${'}'.repeat(9_000)}`;
const END_OF_LIMIT = ' '.repeat(100_000);

test.each([
  ['a message', `{"error":{"message":${deep}}}`],
  ['another member', `{"error":{"message":"no","more":${deep}}}`],
  ['a message, and spaces beyond the limit', `{"error":{"message":${deep}}}${END_OF_LIMIT}`],
])('an error with %s that is nested deeply keeps its status', async (_, body) => {
  respond = async (request, response) => {
    await text(request);
    response.writeHead(500, { 'content-type': 'application/json' }).end(body);
  };
  const call = { caller, signal: new AbortController().signal, maxRetries: 0 };
  const error: unknown = await sendRequest(provider, POST, call).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ status: 500 });
  expect(() => JSON.stringify((error as APIError).error)).not.toThrow();
});
