import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exchange, rawRequest } from '../../support/http/rawHttp.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let agent: string;
let session: string;
const LONG = 'é "quoted"\n'.repeat(15_000);
const MIB = 1_048_576;

beforeAll(async () => {
  service = await startTestService({ text: LONG });
  agent = await service.createAgent({ instruction: LONG });
  const { body } = await service.post(`/v1/agents/${agent}/run`, { input: LONG });
  session = body.data.session_id as string;
  for (let turn = 2; turn <= 8; turn += 1)
    await service.post(`/v1/agents/${agent}/run`, { input: LONG, session_id: session });
});
afterAll(() => service.close());

/** An answer in its own bytes, whatever they are. */
async function fetchRaw(
  path: string,
  headers: Record<string, string> = {},
): Promise<{ head: IncomingMessage; bytes: Buffer }> {
  const request = get(service.url + path, { headers: { 'x-api-key': service.key, ...headers } });
  const [head] = (await once(request, 'response')) as [IncomingMessage];
  return { head, bytes: await buffer(head) };
}

const PATHS = () => [
  '/v1/agents',
  '/v1/agents?limit=1',
  `/v1/agents/${agent}`,
  '/v1/sessions',
  `/v1/sessions/${session}?limit=1`,
  `/v1/sessions/${session}/events?limit=3`,
  `/v1/sessions/${session}/turns/2/requests`,
  `/v1/sessions/${session}?at_turn=1`,
  '/openapi.json',
];

test('every answer is what JSON.stringify makes of it, pretty or not', async () => {
  for (const path of PATHS()) {
    const { bytes } = await fetchRaw(path);
    expect(bytes.toString()).toBe(JSON.stringify(JSON.parse(bytes.toString())));
    const pretty = await fetchRaw(`${path}${path.includes('?') ? '&' : '?'}pretty=true`);
    expect(pretty.bytes.toString()).toBe(
      `${JSON.stringify(JSON.parse(bytes.toString()), null, 2)}\n`,
    );
  }
});

test('answers are compressed for who accepts it, and for nobody else', async () => {
  for (const path of PATHS()) {
    const plain = await fetchRaw(path);
    expect(plain.head.headers).toMatchObject({ vary: 'Accept-Encoding' });
    expect(plain.head.headers['content-encoding']).toBeUndefined();
    const isSmall = plain.bytes.length < 1_024;
    for (const [encoding, decompress] of [
      ['gzip', gunzipSync],
      ['br', brotliDecompressSync],
    ] as const) {
      const { head, bytes } = await fetchRaw(path, { 'accept-encoding': encoding });
      expect(head.headers['content-encoding']).toBe(isSmall ? undefined : encoding);
      expect((isSmall ? bytes : decompress(bytes)).equals(plain.bytes)).toBe(true);
      if (!isSmall) expect(bytes.length).toBeLessThan(plain.bytes.length);
    }
  }
  const nothing = ['identity', 'zstd', 'gzip;q=0, br;q=0', 'gzip;q=abc', 'identity, gzip;q=0.5'];
  const nothingAtAll = ['identity;q=0', '*;q=0', 'identity;q=0, gzip;q=0', 'zstd, *;q=0', ', ,,'];
  const plain = await fetchRaw('/openapi.json');
  for (const accepted of [...nothing, ...nothingAtAll]) {
    const { head, bytes } = await fetchRaw('/openapi.json', { 'accept-encoding': accepted });
    expect([head.statusCode, head.headers['content-encoding']]).toEqual([200, undefined]);
    expect(bytes.equals(plain.bytes)).toBe(true);
  }
});

test('nothing is taken for what it is not, and what is an account’s is kept by nobody', async () => {
  const cacheControl = async (path: string, headers = {}) => {
    const reply = await service.get(path, headers);
    expect(reply.headers.get('x-content-type-options')).toBe('nosniff');
    return reply.headers.get('cache-control');
  };
  for (const path of ['/v1/sessions', `/v1/sessions/${session}`, '/v1/models', '/v1/nowhere'])
    expect(await cacheControl(path)).toBe('private, no-store');
  expect(await cacheControl('/v1/agents', { 'x-api-key': 'wrong' })).toBe('private, no-store');
  expect(await cacheControl('/v1/agents/unknown')).toBe('private, no-store');
  for (const path of ['/v1/agents', `/v1/agents/${agent}`])
    expect(await cacheControl(path)).toBe('private, no-cache');
  expect(await cacheControl('/health/live')).toBeNull();
});

describe('an answer that the client has', () => {
  const ask = async (path: string, etag: string) =>
    (
      await exchange(
        service.url,
        rawRequest(`GET ${path}`, [
          ['x-api-key', service.key],
          ['if-none-match', etag],
        ]),
        { bodiless: true },
      )
    )[0]!;

  test('is not sent again until it has changed', async () => {
    for (const path of [
      '/v1/agents',
      '/v1/agents?limit=1',
      `/v1/agents/${agent}`,
      '/openapi.json',
    ]) {
      const etag = (await service.get(path)).headers.get('etag')!;
      expect(etag).toMatch(/^(?:W\/"|"0-)[\w-]{22}"$/);
      const again = await ask(path, etag);
      expect([again.status, again.headers.get('etag')]).toEqual([304, etag]);
      expect((await ask(path, `W/"another", ${etag}`)).status).toBe(304);
      expect((await ask(path, '*')).status).toBe(304);
      expect((await ask(path, 'W/"another"')).status).toBe(200);
    }
  });

  test('is not sent again to `fetch`, which adds Cache-Control: no-cache', async () => {
    const request = (headers: Record<string, string>) =>
      fetch(`${service.url}/v1/agents`, { headers: { 'x-api-key': service.key, ...headers } });
    const etag = (await request({})).headers.get('etag')!;
    expect((await request({ 'if-none-match': etag })).status).toBe(304);
  });

  test('has another name once an agent is created, and none where it failed', async () => {
    const { headers } = await service.get('/v1/agents');
    await service.createAgent();
    expect((await ask('/v1/agents', headers.get('etag')!)).status).toBe(200);
    expect((await service.get('/v1/agents/unknown')).headers.get('etag')).toBeNull();
  });
});

test('HEAD has the headers of GET, and no body', async () => {
  const head = async (path: string) =>
    (
      await exchange(service.url, rawRequest(`HEAD ${path}`, [['x-api-key', service.key]]), {
        bodiless: true,
      })
    )[0]!;
  for (const path of PATHS()) {
    const [there, got] = [await head(path), await service.get(path)];
    expect(there.status).toBe(200);
    for (const name of ['etag', 'cache-control', 'vary', 'link'])
      expect([path, name, there.headers.get(name)]).toEqual([path, name, got.headers.get(name)]);
  }
});

test.each([
  ['turns', () => `/v1/sessions/${session}`, 8],
  ['events', () => `/v1/sessions/${session}/events`, 17],
])(
  'a page of %s ends at a megabyte, also without a limit, and leads on',
  async (_what, path, all) => {
    let rows = 0;
    let pages = 0;
    for (let next: string | undefined = path(); next !== undefined; pages += 1) {
      const { head, bytes } = await fetchRaw(next);
      expect(bytes.length).toBeLessThan(MIB + 1_000);
      const { data } = JSON.parse(bytes.toString()) as { data: { turns?: unknown[] } | unknown[] };
      rows += (Array.isArray(data) ? data : data.turns!).length;
      next = /^<([^>]+)>/.exec((head.headers['link'] as string | undefined) ?? '')?.[1];
    }
    expect(rows).toBe(all);
    expect(pages).toBeGreaterThan(2);
  },
);

test('the list of agents is complete without a limit, however long it is', async () => {
  // Some megabytes: more than is kept, and than is read at a time.
  const instruction = `"${'\u0001漢'.repeat(40_000)}`;
  for (let count = 0; count < 12; count += 1) await service.createAgent({ instruction });
  const { head, bytes } = await fetchRaw('/v1/agents');
  expect(bytes.length).toBeGreaterThan(4 * MIB);
  expect([head.headers['link'], head.headers['transfer-encoding']]).toEqual([undefined, 'chunked']);
  const { data } = JSON.parse(bytes.toString()) as { data: { agent_id: string }[] };
  const paged: unknown[] = [];
  for (let next: string | undefined = '/v1/agents?limit=1000'; next !== undefined;) {
    const { body, headers } = await service.get(next);
    paged.push(...(body.data as unknown[]));
    next = /^<([^>]+)>/.exec(headers.get('link') ?? '')?.[1];
  }
  expect(paged).toEqual(data);
  const packed = await fetchRaw('/v1/agents', { 'accept-encoding': 'gzip' });
  expect(gunzipSync(packed.bytes).equals(bytes)).toBe(true);
});
