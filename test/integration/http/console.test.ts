/** The console as it is served, over a small one in place of the build. */
import { once } from 'node:events';
import { readdirSync, readlinkSync } from 'node:fs';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { request, type IncomingHttpHeaders, type OutgoingHttpHeaders } from 'node:http';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { SCOPES } from '../../../shared/accounts/events.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { apiClient, startTestService, type TestService } from '../../support/http/service.ts';
import { eventually } from '../../support/processes/operator.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const INDEX = '<!doctype html><title>Console</title>';
const SCRIPT = `export const text = '${'Turnlog '.repeat(500)}';`;
const EMBEDDED = 'customElements.define("turnlog-chat", class extends HTMLElement {});';
const SECRET = 'not for the network';
/** Larger than the buffers of a connection. */
const LARGE_BYTES = 12 * 1_024 * 1_024;

let sources: string;
let service: TestService;
beforeAll(async () => {
  sources = await temporaryFolder();
  const files = {
    'secret.txt': SECRET,
    'dist/.fingerprint': SECRET,
    'dist/index.html': INDEX,
    'dist/turnlog-chat.js': EMBEDDED,
    'dist/assets/index-Ab_1-x.js': SCRIPT,
    'dist/assets/index-Ab_1-x.js.br': brotliCompressSync(SCRIPT),
    'dist/assets/index-Ab_1-x.js.gz': gzipSync(SCRIPT),
    'dist/assets/plain-1.js': SCRIPT,
    'dist/assets/large-1.png': Buffer.alloc(LARGE_BYTES),
  };
  await mkdir(join(sources, 'dist/assets'), { recursive: true });
  for (const [name, content] of Object.entries(files))
    await writeFile(join(sources, name), content);
  service = await startTestService({ text: 'Hi.' }, { CONSOLE: 'on' }, sources);
});
afterAll(async () => {
  await service.close();
  await rm(sources, { recursive: true });
});

interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

interface Sent {
  url?: string;
  method?: string;
  headers?: OutgoingHttpHeaders;
  body?: string;
}

/** Sends the path as it is, which `fetch` would normalize. */
async function send(
  path: string,
  { url = service.url, method = 'GET', headers = {}, body = '' }: Sent = {},
): Promise<Answer> {
  const { hostname, port } = new URL(url);
  const sent = request({ hostname, port, path, method, headers });
  sent.end(body);
  const [response] = await once(sent, 'response');
  return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
}

describe('the pages', () => {
  test.each([
    '/console',
    '/console/',
    '/console/agents',
    '/console/sessions/session_01/events/3?x=1',
  ])('at %s are the index, which is checked for a newer one each time', async (path) => {
    const { status, headers, body } = await send(path);
    expect({ status, text: body.toString() }).toEqual({ status: 200, text: INDEX });
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
      'content-length': String(INDEX.length),
    });
    const again = await send(path, { headers: { 'if-none-match': headers.etag! } });
    expect([again.status, again.body.length]).toEqual([304, 0]);
  });

  test('have a strict content security policy, and tell no one where they were', async () => {
    const { headers } = await send('/console/agents');
    expect(headers).toMatchObject({
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    });
    expect(headers).not.toHaveProperty('access-control-allow-origin');
  });

  test('can be asked for without their content, and not be written to', async () => {
    const { status, headers, body } = await send('/console', { method: 'HEAD' });
    expect([status, headers['content-length'], body.length]).toEqual([200, `${INDEX.length}`, 0]);
    for (const [path, allow] of [
      ['/console/agents', 'GET, HEAD'],
      ['/console/sign-in', 'GET, HEAD, POST'],
    ]) {
      const refused = await send(path!, { method: 'DELETE' });
      expect([refused.status, refused.headers['allow']]).toEqual([405, allow]);
    }
  });
});

describe('the files', () => {
  const ASSET = '/console/assets/index-Ab_1-x.js';

  test.each([
    ['gzip, deflate, br, zstd', 'br', brotliDecompressSync],
    ['gzip', 'gzip', gunzipSync],
    ['br;q=0, gzip;q=0', undefined, (bytes: Buffer) => bytes],
    [undefined, undefined, (bytes: Buffer) => bytes],
  ])(
    'for a client that accepts %s are sent as %s, as the build compressed them',
    async (accepted, encoding, decode) => {
      const headers = accepted === undefined ? {} : { 'accept-encoding': accepted };
      const asset = await send(ASSET, { headers });
      expect(asset.status).toBe(200);
      expect(asset.headers['content-encoding']).toBe(encoding);
      expect(asset.headers).toMatchObject({
        'content-type': 'text/javascript; charset=utf-8',
        'cache-control': 'public, max-age=31536000, immutable',
        'content-length': String(asset.body.length),
        vary: expect.stringMatching(/accept-encoding/i),
      });
      expect(decode(asset.body).toString()).toBe(SCRIPT);
    },
  );

  test('that the build did not compress are sent as they are', async () => {
    const headers = { 'accept-encoding': 'br, gzip' };
    const plain = await send('/console/assets/plain-1.js', { headers });
    expect(plain.headers).not.toHaveProperty('content-encoding');
    expect(plain.body.toString()).toBe(SCRIPT);
  });

  test('can be asked for without their content', async () => {
    const { status, headers, body } = await send('/console/assets/large-1.png', { method: 'HEAD' });
    expect([status, headers['content-length'], body.length]).toEqual([200, `${LARGE_BYTES}`, 0]);
  });

  test.each([
    '/console/assets/none-1.js',
    '/console/none.js',
    '/console/assets/',
    '/console/index-Ab_1-x.js',
    '/console/assets/index-Ab_1-x.js.br',
    '/console/.fingerprint',
    '/console/../secret.txt',
    '/console/assets/../../secret.txt',
    '/console/assets/..%2f..%2fsecret.txt',
    '/console/%2e%2e/secret.txt',
    '/console/..%5csecret.txt',
    '/console/assets/%00.js',
    '/console//etc/passwd.txt',
  ])('%s is none of them', async (path) => {
    const { status, headers, body } = await send(path);
    expect({ path, status, type: headers['content-type'] }).toEqual({
      path,
      status: 404,
      type: 'application/json; charset=utf-8',
    });
    expect(JSON.parse(body.toString())).toMatchObject({ success: false, code: 'not_found' });
    expect(body.toString()).not.toContain(SECRET);
  });

  test('include the component, which pages of other hosts may load', async () => {
    const { status, headers, body } = await send('/console/turnlog-chat.js');
    expect([status, body.toString()]).toEqual([200, EMBEDDED]);
    expect(headers).toMatchObject({
      'cross-origin-resource-policy': 'cross-origin',
      'access-control-allow-origin': '*',
      'cache-control': 'public, max-age=300',
    });
    const again = await send('/console/turnlog-chat.js', {
      headers: { 'if-none-match': headers.etag! },
    });
    expect(again.status).toBe(304);
  });

  const openFiles = (): string[] =>
    readdirSync('/proc/self/fd').flatMap((fd) => {
      try {
        return [readlinkSync(`/proc/self/fd/${fd}`)];
      } catch {
        return [];
      }
    });

  (process.platform === 'linux' ? test : test.skip)(
    'are open neither while a client reads an answer nor after one without content',
    async () => {
      const isOpen = (): boolean => openFiles().some((path) => path.startsWith(sources));
      const sent = request(`${service.url}/console/assets/large-1.png`).end();
      const [response] = await once(sent, 'response');
      await once(response, 'readable');
      expect(isOpen()).toBe(false);
      sent.destroy();
      await send('/console/assets/large-1.png', { method: 'HEAD' });
      expect(isOpen()).toBe(false);
    },
  );

  test('are in memory once for all clients that read them slowly', async () => {
    const before = process.memoryUsage().external;
    const clients = await Promise.all(
      Array.from({ length: 20 }, async () => {
        const sent = request(`${service.url}/console/assets/large-1.png`).end();
        const [response] = await once(sent, 'response');
        await once(response, 'readable');
        return sent;
      }),
    );
    const grown = process.memoryUsage().external - before;
    for (const sent of clients) sent.destroy();
    expect(grown).toBeLessThan(2 * LARGE_BYTES);
  });

  test('are those of a later build once it has replaced the files', async () => {
    const path = join(sources, 'dist/assets/plain-1.js');
    const read = async () => {
      const { headers, body } = await send('/console/assets/plain-1.js');
      return { text: body.toString(), etag: headers.etag };
    };
    const first = await read();
    await writeFile(`${path}.new`, SCRIPT.toUpperCase());
    await rename(`${path}.new`, path);
    const second = await read();
    expect(second.text).toBe(SCRIPT.toUpperCase());
    expect(second.etag).not.toBe(first.etag);
  });
});

describe('the link of the start', () => {
  const SIGN_IN = '/console/sign-in';
  let code: string;
  const signIn = (body: unknown, headers: Record<string, string> = {}, url = service.url) =>
    apiClient(url, undefined).post(SIGN_IN, body, headers);

  beforeAll(() => {
    code = new URL(service.service().consoleLink!).hash.slice('#code='.length);
  });

  test('names the console on this machine, and adds nothing to the log by itself', async () => {
    expect(service.service().consoleLink).toBe(`${service.url}/console/#code=${code}`);
    expect(code).toMatch(/^[\w-]{32}$/);
    const { body } = await service.get('/v1/keys');
    expect(body.data.map(({ name }: { name: string }) => name)).not.toContain('console');
  });

  test.each([
    ['another code', () => ({ code: code.slice(1) })],
    ['an empty code with a letter', () => ({ code: 'x' })],
  ])('is needed: %s signs in no one', async (_what, body) => {
    const reply = await signIn(body());
    expect(expectFailure(reply, 'unauthorized').error).toMatch(
      /^The code is wrong, expired or used/,
    );
  });

  test.each([
    [{}, 'code'],
    [{ code: 7 }, 'code'],
    [{ code: '' }, 'code'],
    [{ code: 'x'.repeat(201) }, 'code'],
    [{ code: 'x', scope: 'all' }, 'scope'],
  ])('a body like %j is refused by the name of its field', async (body, field) => {
    expect(expectFailure(await signIn(body), 'invalid_request').details).toHaveProperty([field]);
  });

  test('needs JSON', async () => {
    expectFailure(await signIn('code', { 'content-type': 'text/plain' }), 'unsupported_media_type');
    expectFailure(await signIn('{'), 'invalid_json');
  });

  test.each([
    ['for another host', { host: 'turnlog.example.com' }],
    ['for a host that begins like this one', { host: 'localhost.example.com' }],
    ['through a proxy', { host: 'localhost', 'x-forwarded-for': '203.0.113.7' }],
    ['through a proxy of the standard', { host: 'localhost', forwarded: 'for=203.0.113.7' }],
  ])('signs in no request %s', async (_what, headers) => {
    const { status, body } = await send(SIGN_IN, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify({ code }),
    });
    expect(status).toBe(403);
    expect(JSON.parse(body.toString())).toMatchObject({ code: 'forbidden', retry: 'never' });
  });

  const outside = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ internal, family }) => !internal && family === 'IPv4');
  (outside ? test : test.skip)(
    'signs in no client on another address of this machine',
    async () => {
      const open = await startTestService(
        { text: 'Hi.' },
        { CONSOLE: 'on', HOST: '0.0.0.0' },
        sources,
      );
      try {
        // Nothing to print: in a container, no browser could use it.
        expect(open.service().consoleLink).toBeUndefined();
        const { port } = new URL(open.url);
        const { status } = await send(SIGN_IN, {
          url: `http://${outside!.address}:${port}`,
          method: 'POST',
          headers: { host: 'localhost', 'content-type': 'application/json' },
          body: JSON.stringify({ code: 'x' }),
        });
        expect(status).toBe(403);
      } finally {
        await open.close();
      }
    },
  );

  test('signs in once, with a key of every scope that expires and that no cache keeps', async () => {
    const replies = await Promise.all([signIn({ code }), signIn({ code }), signIn({ code })]);
    const [reply, ...others] = replies.toSorted((one, other) => one.status - other.status);
    for (const other of others) expectFailure(other, 'unauthorized');
    expect(reply).toMatchObject({ status: 200, body: { success: true } });
    expect(reply!.headers.get('cache-control')).toBe('no-store');
    const { api_key, expires_at } = reply!.body.data;
    expect(Object.keys(reply!.body.data)).toEqual(['api_key', 'expires_at']);
    expect((await apiClient(service.url, api_key).get('/v1/agents')).status).toBe(200);
    const { body } = await service.get('/v1/keys');
    const keys = body.data.filter(({ name }: { name: string }) => name === 'console');
    expect(keys).toMatchObject([{ scopes: SCOPES, expires_at, issued_by: 'operator' }]);
    const hours = (Date.parse(expires_at) - Date.parse(keys[0].issued_at)) / 3_600_000;
    expect(hours).toBeCloseTo(12, 1);
  });

  test('delays those who guess, and refuses them where too many wait', async () => {
    const guesses = await Promise.all(
      Array.from({ length: 60 }, (_, at) => signIn({ code: `${at}` })),
    );
    const statuses = new Set(guesses.map(({ status }) => status));
    expect(statuses).toEqual(new Set([401, 429]));
  });
});

test('a failed build names no folder to clients of other machines', async () => {
  const empty = await temporaryFolder();
  const unbuilt = await startTestService({ text: 'Hi.' }, { CONSOLE: 'on' }, empty);
  const visit = async (headers: OutgoingHttpHeaders = {}): Promise<string> =>
    (await send('/console/', { url: unbuilt.url, headers })).body.toString();
  try {
    const shown = await eventually(visit, (page) => page.includes('could not be built'));
    expect(shown).toContain(empty);
    const elsewhere = await visit({ 'x-forwarded-for': '203.0.113.7' });
    expect(elsewhere).toContain('could not be built');
    expect(elsewhere).toContain('The log of the service says why.');
    expect(elsewhere).not.toContain(empty);
  } finally {
    await unbuilt.close();
    await rm(empty, { recursive: true });
  }
});

test('CONSOLE=off leaves nothing of it', async () => {
  const off = await startTestService({ text: 'Hi.' }, { CONSOLE: 'off' }, sources);
  try {
    expect(off.service().consoleLink).toBeUndefined();
    const unknown = await off.get('/nothing/here');
    for (const path of ['/console', '/console/', '/console/turnlog-chat.js']) {
      const reply = await off.get(path);
      expect(expectFailure(reply, 'not_found').error).toBe(unknown.body.error);
      expect(reply.headers.get('content-security-policy')).toBeNull();
    }
    expectFailure(await off.post('/console/sign-in', { code: 'x' }), 'not_found');
  } finally {
    await off.close();
  }
});
