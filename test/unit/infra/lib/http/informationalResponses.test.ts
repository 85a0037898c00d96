import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, expect, test } from '@jest/globals';
import { limitedFetch } from '../../../../../infra/lib/http/limitedFetch.ts';
import { createBoundedFetch } from '../../../../../infra/mcp/thread/boundedFetch.ts';
import { createInflow } from '../../../../../infra/mcp/thread/inflow.ts';
import { createChatModels } from '../../../../../infra/openai/chatModels.ts';
import { createGuardedFetch } from '../../../../../infra/web/guardedFetch.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import { createWebhookSender } from '../../../../../infra/web/webhookSender.ts';
import { openKeptCheckpoints } from '../../../../../infra/witness/keptCheckpoints.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { MIB } from '../../../../../shared/lib/units.ts';
import { CERTIFICATE_FILE, KEY_FILE } from '../../../../support/servers/tls/files.ts';

const HINT = 'HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n';
const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-type: application/json\r\n\r\n{}';
const { signal } = new AbortController();
/** Longer than the test may take: no client may need its deadline. */
const DEADLINE_MS = 600_000;

let server: Server;
let closed: Promise<unknown>[];
afterEach(() => void server.close());

async function serve(talk: (socket: Socket) => void): Promise<string> {
  closed = [];
  server = createServer((socket) => {
    socket.on('error', () => {});
    closed.push(new Promise((resolve) => socket.once('close', resolve)));
    socket.once('data', () => talk(socket));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** Sends informational responses until the connection is closed. */
function flood(socket: Socket): void {
  while (socket.write(HINT.repeat(100)));
  socket.on('drain', () => flood(socket));
}

const guarded = createGuardedFetch({
  allowPrivate: true,
  redirects: 0,
  bytes: 1_000,
  ms: DEADLINE_MS,
});

async function completeAt(base_url: string): Promise<unknown> {
  const models = createChatModels({
    providers: [{ id: 'p', base_url }],
    models: [{ id: 'm', provider: 'p', upstream_model: 'm' }] as never,
    limits: { attemptTimeoutMs: DEADLINE_MS, maxRetries: 0, maxConnections: 1 },
    memory: createMemoryLedger(),
  });
  try {
    return await models.complete('m', { model: 'm', messages: [] }, signal, { account_id: 'a' });
  } finally {
    await models.close();
  }
}

const CLIENTS: readonly [string, (url: string) => Promise<unknown>][] = [
  ['a model provider', completeAt],
  ['a web page', (url) => guarded({ url, method: 'GET', headers: {} }, signal)],
  [
    'a webhook',
    async (url) => {
      const send = createWebhookSender({ allowPrivate: true, answerMs: DEADLINE_MS });
      const outcome = await send({ url, secret: 'whsec_AAAA', id: 'e', body: '{}', signal });
      if (!outcome.accepted) throw new Error(outcome.reason);
    },
  ],
  [
    'an MCP server',
    async (url) => {
      const fetchBounded = createBoundedFetch(
        DEADLINE_MS,
        createInflow(() => undefined),
      );
      const response = await fetchBounded(url, { method: 'POST', body: '{}', signal });
      return response.text();
    },
  ],
  [
    'kept checkpoints',
    async (url) => {
      const read = await openKeptCheckpoints(url).read(AbortSignal.timeout(DEADLINE_MS));
      if ('trouble' in read) throw new Error(read.trouble);
    },
  ],
];

test.each(CLIENTS)('%s that never stops sending them is disconnected', async (_who, request) => {
  const url = await serve(flood);
  await expect(request(url)).rejects.toThrow();
  await Promise.all(closed);
});

test.each(CLIENTS)(
  '%s is not offered HTTP/2, whose frames are not counted',
  async (_who, request) => {
    const offered: string[][] = [];
    server = createTlsServer({
      cert: readFileSync(CERTIFICATE_FILE),
      key: readFileSync(KEY_FILE),
      ALPNCallback: ({ protocols }) => void offered.push(protocols),
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    // The certificate is unknown.
    await expect(request(`https://127.0.0.1:${port}/`)).rejects.toThrow();
    expect(offered).not.toEqual([]);
    expect(offered.flat()).not.toContain('h2');
  },
);

const CHUNKED =
  'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
const FILLERS: readonly [string, string, string][] = [
  ['line ends before the response', '', '\r\n'],
  ['an extension of a chunk', `${CHUNKED}1;a=`, 'a'],
  ['zeros before the size of a chunk', CHUNKED, '0'],
];

describe.each(FILLERS)('a connection with %s is closed, of', (_what, begin, filler) => {
  test.each(CLIENTS)('%s', async (who, request) => {
    const url = await serve((socket) => {
      socket.write(begin);
      // More than the buffers of the sockets take.
      socket.write(filler.repeat((32 * MIB) / filler.length));
    });
    // The status alone is the answer of a webhook's receiver.
    if (who === 'a webhook' && begin !== '') await request(url);
    else await expect(request(url)).rejects.toThrow();
    await Promise.all(closed);
  });
});

test.each([
  [1, MIB / 2],
  [1_000, 3_000],
])('a body in chunks of %d bytes is read, however slow its reader is', async (size, count) => {
  const chunk = `${size.toString(16)};ab=cd\r\n${'x'.repeat(size)}\r\n`;
  const url = await serve((socket) => socket.end(`${CHUNKED}${chunk.repeat(count)}0\r\n\r\n`));
  const { body } = await limitedFetch(url);
  let read = 0;
  for await (const piece of body!) {
    read += piece.length;
    if (read % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  expect(read).toBe(size * count);
});

test('a few of them before the response are ignored', async () => {
  const url = await serve((socket) =>
    socket.end(HINT.repeat(LIMITS.web.informationalResponses) + OK),
  );
  expect(await guarded({ url, method: 'GET', headers: {} }, signal)).toMatchObject({ status: 200 });
});
