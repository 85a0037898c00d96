import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, expect, test } from '@jest/globals';
import { limitedFetch } from '../../../../../infra/lib/http/limitedFetch.ts';

let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function serve(listener: RequestListener): Promise<string> {
  server = createServer(listener);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** A body that each coding has encoded. */
const encoded = (codings: readonly string[]): Buffer =>
  codings.reduce<Buffer>(
    (body, coding) => (coding === 'br' ? brotliCompressSync(body) : gzipSync(body)),
    Buffer.from('text'),
  );

test.each([[['gzip']], [['br']], [['br', 'br']], [['br', 'br', 'br', 'br', 'br']]])(
  'a response with the content codings %j is refused before it is decoded',
  async (codings) => {
    const url = await serve((_request, response) =>
      response.writeHead(200, { 'content-encoding': codings.join(', ') }).end(encoded(codings)),
    );
    await expect(limitedFetch(url)).rejects.toMatchObject({
      cause: { code: 'UNREQUESTED_CONTENT_CODING' },
    });
  },
);

test.each([
  [{}],
  [{ 'content-encoding': 'Identity' }],
  [{ 'content-encoding': 'identity, identity' }],
  [{ 'content-encoding': 'none' }],
  [{ 'content-encoding': '' }],
])('a response without a content coding that fetch decodes is read: %j', async (headers) => {
  const accepted: unknown[] = [];
  const url = await serve((request, response) => {
    accepted.push(request.headers['accept-encoding'], request.headers['x-key']);
    response.writeHead(200, headers).end('text');
  });
  const response = await limitedFetch(url, { headers: { 'x-key': 'key' } });
  expect(await response.text()).toBe('text');
  expect(accepted).toEqual(['identity', 'key']);
});
