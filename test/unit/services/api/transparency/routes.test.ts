import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { Context } from 'koa';
import { createMetrics } from '../../../../../infra/metrics/metrics.ts';
import { typeIds } from '../../../../../infra/ids/typeIds.ts';
import { createMemoryLedger } from '../../../../../shared/lib/memory/ledger.ts';
import { createApp } from '../../../../../services/api/app.ts';
import type { ApiContext } from '../../../../../services/api/context.ts';
import { createAddressLimit } from '../../../../../services/api/http/middleware/rateLimit.ts';
import { LIMITS } from '../../../../../shared/limits.ts';
import { createLogger } from '../../../../../shared/lib/logger.ts';
import { entriesOf } from '../../../../../shared/transparency/tlog/tiles.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { entryOf } from '../../../../support/fakes/memoryTiles.ts';
import { testLog, type TestLog } from '../../../../support/servers/witness/log.ts';

const SIZE = 300;

let log: TestLog;
let note: string | undefined;
let reads: string[];
const servers: Server[] = [];

/** As much of the API as reads the log without a key, and as refuses who has none. */
async function serve(logPublic: boolean): Promise<string> {
  const api = {
    ids: typeIds,
    clock: { now: () => Date.now() },
    logger: createLogger('silent'),
    memory: createMemoryLedger(),
    availability: () => 'up',
    corsOrigins: undefined,
    metrics: createMetrics(),
    limits: { storeWaitMs: 10_000 },
    cachedRows: { findKeyPrincipal: () => Promise.resolve(undefined) },
    logPublic,
    tiles: {
      read: async (path: string) => {
        reads.push(path);
        return log.tiles.read(path);
      },
      readCheckpoint: async () => note,
    },
  } as unknown as ApiContext;
  const handle = createApp(api).callback();
  const server = createServer((request, response) => void handle(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  servers.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

let url: string;
let closed: string;
beforeAll(async () => {
  log = await testLog(SIZE);
  reads = [];
  url = await serve(true);
  closed = await serve(false);
});
afterAll(() => {
  for (const server of servers) server.closeAllConnections();
  for (const server of servers) server.close();
});

const get = (path: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${url}/v1/log/${path}`, { headers });
const askAgain = (path: string, etag: string): Promise<Response> =>
  get(path, { 'if-none-match': etag });
/** A request as it is written down: nothing of its path is tidied up. */
const asWritten = async (path: string): Promise<Buffer> => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.write(`GET /v1/log/${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
  return buffer(socket);
};
const bytesOf = async (response: Response): Promise<Buffer> =>
  Buffer.from(await response.arrayBuffer());

describe('the checkpoint', () => {
  test('is 404 before there is one, and then the note as it is, asked for anew each time', async () => {
    expect((await get('checkpoint')).status).toBe(404);
    note = await log.checkpoint(SIZE);
    const answer = await get('checkpoint');
    expect(await answer.text()).toBe(note);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([
      200,
      'text/plain; charset=utf-8',
    ]);
    expect(answer.headers.get('cache-control')).toBe('public, no-cache');
    const etag = answer.headers.get('etag')!;
    const same = await askAgain('checkpoint', etag);
    expect([same.status, await same.text()]).toEqual([304, '']);
    note = await log.checkpoint(7);
    expect((await askAgain('checkpoint', etag)).status).toBe(200);
  });
});

describe('a tile', () => {
  test.each([
    'tile/0/000',
    'tile/0/001.p/44',
    'tile/0/001.p/1',
    'tile/1/000.p/1',
    'tile/entries/000',
  ])('is answered as it is kept, for ever: %s', async (path) => {
    const answer = await get(path);
    expect(answer.status).toBe(200);
    expect(await bytesOf(answer)).toEqual(Buffer.from((await log.tiles.read(path))!));
    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    expect(answer.headers.get('cache-control')).toBe('public, max-age=604800, immutable');
    expect((await askAgain(path, answer.headers.get('etag')!)).status).toBe(304);
  });

  test('of entries holds the entries', async () => {
    const bundle = await bytesOf(await get('tile/entries/001.p/44'));
    expect(entriesOf(bundle, 44).map(String)).toEqual(
      Array.from({ length: 44 }, (_, index) => String(entryOf(256 + index))),
    );
  });

  const NONE = [
    'tile/0/002',
    'tile/0/001',
    'tile/0/001.p/45',
    'tile/5/000.p/1',
    'tile/0/x001/000',
    'tile/entries/001',
  ];
  test.each(NONE)('that is not there is 404: %s', async (path) => {
    const answer = await get(path);
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ success: false, code: 'not_found' });
    expect(answer.headers.get('cache-control')).toBe('private, no-store');
    expect(answer.headers.get('etag')).toBeNull();
  });

  const BAD = [
    'tile/0/0',
    'tile/0/00',
    'tile/0/0000',
    'tile/00/000',
    'tile/64/000.p/1',
    'tile/-1/000',
    'tile/256/000',
    'tile/0/x000/000',
    'tile/0/001/000',
    'tile/0/x001',
    'tile/0/X001/000',
    `tile/0/${'x999/'.repeat(6)}999`,
    `tile/0/${'x001/'.repeat(1_000)}000`,
    'tile/0/000.p/0',
    'tile/0/000.p/256',
    'tile/0/000.p/01',
    'tile/0/000.p/1/1',
    'tile/0/000.p/',
    'tile/0/000.p/1e1',
    'tile/0/000/',
    'tile/0//000',
    'tile//0/000',
    'tile/entries/000.p/0',
    'tile/Entries/000',
    'tile/%65ntries/000',
    'tile/0/%30%30%30',
    'tile/0/000%2Ep/1',
    'tile/0/000.p%2F1',
    'tile/0/..%2f..%2f..%2fcheckpoint',
    'tile/0/000%00',
    'tile/0/%zz',
    'tile/0/٠٠٠',
    'tile/0/000;x',
    'tile/__proto__/000',
    'tile/0/constructor',
  ];
  test.each(BAD)('at a path that is none is 404, and nothing is looked for: %s', async (path) => {
    reads = [];
    expect((await get(path)).status).toBe(404);
    expect(reads).toEqual([]);
  });

  test('at a path with dots in it is looked for nowhere else, however the client writes it', async () => {
    reads = [];
    for (const path of [
      'tile/../checkpoint',
      'tile/0/../../checkpoint',
      'tile/0/%2e%2e/%2e%2e/checkpoint',
      '../log/tile/0/000',
      'tile/0/../0/000',
    ])
      expect(String(await asWritten(path)).slice(0, 12)).toBe('HTTP/1.1 404');
    expect(reads).toEqual([]);
  });

  test('is only read: other methods are 405', async () => {
    for (const method of ['POST', 'PUT', 'DELETE'])
      expect((await fetch(`${url}/v1/log/tile/0/000`, { method })).status).toBe(405);
    const head = await fetch(`${url}/v1/log/tile/0/000`, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length')]).toEqual([200, '8192']);
  });

  test('takes no query but that of every operation', async () => {
    expect((await get('tile/0/000?x=1')).status).toBe(400);
    expect((await bytesOf(await get('tile/0/000?pretty=true'))).length).toBe(8_192);
  });

  test('stays itself for a client that takes it compressed', async () => {
    const answer = await get('tile/entries/000', { 'accept-encoding': 'gzip' });
    expect(answer.headers.get('content-encoding')).toBe('gzip');
    expect(await bytesOf(answer)).toEqual(Buffer.from((await log.tiles.read('tile/entries/000'))!));
  });
});

describe('who has no key', () => {
  test('reads nothing where the operator has not said that everybody may', async () => {
    reads = [];
    for (const path of ['checkpoint', 'tile/0/000', 'tile/entries/000', 'tile/0/x'])
      expect((await fetch(`${closed}/v1/log/${path}`)).status).toBe(401);
    expect(reads).toEqual([]);
  });

  test('is told 429, and when to go on, once an address has had its second', async () => {
    const take = createAddressLimit();
    const from = (remoteAddress: string): Context =>
      ({ req: { socket: { remoteAddress } } }) as unknown as Context;
    const most = LIMITS.publicLog.requestsPerSecond;
    for (let request = 0; request < most; request += 1)
      take(from(`2001:db8:1:2:${request.toString(16)}::1`));
    expect(() => take(from('2001:db8:1:2::9'))).toThrow(`${most} requests per second`);
    take(from('2001:db8:1:3::1'));
    take(from('127.0.0.1'));
    await eventually(
      async () => {
        try {
          take(from('2001:db8:1:2::9'));
          return true;
        } catch {
          return false;
        }
      },
      (isServed) => isServed,
    );
  });

  test('is counted where the log is public', async () => {
    // Its second does not end.
    const now = jest.spyOn(performance, 'now').mockReturnValue(performance.now() + 2_000);
    try {
      for (let asked = 0; asked < LIMITS.publicLog.requestsPerSecond; asked += 50)
        for (const { status } of await Promise.all(
          Array.from({ length: 50 }, () => get('checkpoint')),
        ))
          expect(status).toBe(200);
      const refused = await get('tile/0/000');
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1']);
      expect(await refused.json()).toMatchObject({ code: 'rate_limited' });
    } finally {
      now.mockRestore();
    }
  });
});
