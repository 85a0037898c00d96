import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { afterEach, describe, expect, jest, test } from '@jest/globals';
import { webFailedError } from '../../../../infra/web/failures.ts';
import {
  createGuardedFetch,
  findUnreachable,
  type GuardOptions,
} from '../../../../infra/web/guardedFetch.ts';
import { CERTIFICATE_FILE, KEY_FILE } from '../../../support/servers/tls/files.ts';

const { signal } = new AbortController();
const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

const portOf = (server: { address(): unknown }) => (server.address() as AddressInfo).port;

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return portOf(server);
}
const serve = (listener: RequestListener) => listening(createServer(listener));

/** A server that says what it is told to, HTTP or not. */
async function serveRaw(talk: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    talk(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return portOf(server);
}

const guarded = (options: Partial<GuardOptions> = {}) =>
  createGuardedFetch({ allowPrivate: true, redirects: 3, bytes: 1_000, ms: 10_000, ...options });
const get = (url: string, options: Partial<GuardOptions> = {}) =>
  guarded(options)({ url, method: 'GET', headers: {} }, signal);

const refused = (message: string | RegExp) => ({
  code: 'web_refused',
  message: expect.stringMatching(message),
});
const failed = (message: string | RegExp) => ({
  code: 'web_failed',
  message: expect.stringMatching(message),
});

describe('a host', () => {
  const find = (url: string, options: Partial<GuardOptions> = {}) =>
    findUnreachable(url, { allowPrivate: false, ...options });
  const names = (addresses: string[]) => ({ resolve: async () => addresses });

  test.each([
    'https://127.0.0.1/',
    'https://2130706433/',
    'https://[::1]/',
    'https://[fe80::1]/',
    'https://[::ffff:10.0.0.1]/',
    'https://169.254.169.254/',
    'https://192.168.1.1:8443/',
    'https://100.64.0.1/',
    'https://203.0.113.9/',
    'https://localhost/',
    'https://any.localhost/',
  ])('that is not public is found before a request: %s', async (url) => {
    expect(await find(url)).toBe('not_public');
    expect(await find(url, { allowPrivate: true })).toBeUndefined();
  });

  test('is judged by all of its addresses', async () => {
    expect(await find('https://a.example/', names(['93.184.216.34', '10.0.0.1']))).toBe(
      'not_public',
    );
    expect(await find('https://a.example/', names(['93.184.216.34']))).toBeUndefined();
  });

  test('is judged by no more of its addresses than a message may be sent to', async () => {
    const many = Array<string>(6_000).fill('93.184.216.34').with(5_999, '10.0.0.1');
    expect(await find('https://a.example/', names(many))).toBeUndefined();
  });

  test('without an address is unknown, private addresses allowed or not', async () => {
    for (const allowPrivate of [true, false])
      expect(await find('https://a.example/', { ...names([]), allowPrivate })).toBe('unknown_name');
    expect(await find(`https://${'a'.repeat(64)}.example/`)).toBe('unknown_name');
  });

  test('may be reachable where the name servers do not answer', async () => {
    const resolve = () => Promise.reject(webFailedError('has a name that could not be looked up'));
    expect(await find('https://a.example/', { resolve })).toBeUndefined();
  });
});

describe('what may be asked', () => {
  test.each([
    ['file:///etc/passwd', 'http'],
    ['ftp://example.com/', 'http'],
    ['gopher://example.com/', 'http'],
    ['data:text/plain,hello', 'http'],
    ['not a url', 'not a URL'],
    ['/relative', 'not a URL'],
    ['http://name@example.com/', 'credentials'],
    ['http://name:password@example.com/', 'credentials'],
    [`http://example.com/${'a'.repeat(9_000)}`, '8192'],
  ])('refuses %.60s', async (url, why) => {
    const resolve = jest.fn(async () => ['127.0.0.1']);
    await expect(get(url, { resolve })).rejects.toMatchObject(refused(why));
    expect(resolve).not.toHaveBeenCalled();
  });

  test.each([
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.0.0.1',
    '017700000001',
    '[::1]',
    '[::ffff:127.0.0.1]',
    'localhost',
    'LOCALHOST.',
    'any.localhost',
    '169.254.169.254',
    '0.0.0.0',
    '[::]',
  ])('refuses %s without a request, unless private addresses are allowed', async (host) => {
    const asked = jest.fn();
    const port = await serve((_request, response) => {
      asked();
      response.end();
    });
    await expect(get(`http://${host}:${port}/`, { allowPrivate: false })).rejects.toMatchObject(
      refused('not public'),
    );
    expect(asked).not.toHaveBeenCalled();
  });

  test('refuses a name one of whose addresses is private', async () => {
    const resolve = async () => ['93.184.216.34', '10.0.0.1'];
    await expect(
      get('http://mixed.example/', { allowPrivate: false, resolve }),
    ).rejects.toMatchObject(refused('not public'));
  });

  test('looks at no more addresses of a name than it may connect to', async () => {
    const resolve = async () => Array<string>(6_000).fill('8.8.8.8').with(5_999, '10.0.0.1');
    await expect(
      get('http://many.example/', { allowPrivate: false, resolve, ms: 1 }),
    ).rejects.toMatchObject(failed(/within|reached/));
  });

  test('says that a name is not known', async () => {
    await expect(get('http://none.example/', { resolve: async () => [] })).rejects.toMatchObject(
      failed('no name server knows'),
    );
  });

  test('says that a name could not be looked up', async () => {
    const resolve = () => Promise.reject(webFailedError('has a name that could not be looked up'));
    await expect(get('http://slow.example/', { resolve })).rejects.toMatchObject(
      failed('could not be looked up'),
    );
  });

  test('asks for a name once, and connects to the address that was checked', async () => {
    const port = await serve((request, response) => response.end(request.headers.host));
    const resolve = jest.fn(async () => ['127.0.0.1']);
    const { body } = await get(`http://rebinding.example:${port}/`, { resolve });
    expect(body.toString()).toBe(`rebinding.example:${port}`);
    expect(resolve).toHaveBeenCalledTimes(1);
  });
});

describe('redirects', () => {
  test('are followed, and the last URL is told', async () => {
    const port = await serve((request, response) => {
      if (request.url === '/end') return response.end('there');
      response.writeHead(302, { location: '/end' });
      return response.end('ignored');
    });
    const answer = await get(`http://127.0.0.1:${port}/start?a=1#part`);
    expect(answer).toMatchObject({ status: 200, url: `http://127.0.0.1:${port}/end` });
    expect(answer.body.toString()).toBe('there');
  });

  test('are checked each like the first address', async () => {
    const inner = jest.fn();
    const secret = await serve((_request, response) => {
      inner();
      response.end('secret');
    });
    const port = await serve((_request, response) => {
      response.writeHead(302, { location: `http://inner.example:${secret}/` });
      response.end();
    });
    const resolve = jest.fn(async (name: string) =>
      name === 'outer.example' ? ['127.0.0.1'] : [],
    );
    await expect(get(`http://outer.example:${port}/`, { resolve })).rejects.toMatchObject(
      failed('no name server'),
    );
    expect(resolve.mock.calls).toEqual([['outer.example'], ['inner.example']]);
    expect(inner).not.toHaveBeenCalled();
  });

  test.each(['file:///etc/passwd', 'http://a:b@127.0.0.1/', 'http://[bad'])(
    'to %s is refused',
    async (location) => {
      const port = await serve((_request, response) => {
        response.writeHead(301, { location });
        response.end();
      });
      await expect(get(`http://127.0.0.1:${port}/`)).rejects.toMatchObject(refused(/^The address/));
    },
  );

  test('end after so many', async () => {
    let asked = 0;
    const port = await serve((_request, response) => {
      response.writeHead(307, { location: `/${++asked}` });
      response.end();
    });
    await expect(get(`http://127.0.0.1:${port}/`)).rejects.toMatchObject(
      failed('more than 3 times'),
    );
    expect(asked).toBe(4);
  });

  test('a body of one is not waited for', async () => {
    const port = await serve((request, response) => {
      if (request.url === '/end') return response.end('there');
      response.writeHead(302, { location: '/end' });
      return response.write('and then nothing');
    });
    const { body } = await get(`http://127.0.0.1:${port}/`);
    expect(body.toString()).toBe('there');
  });

  test('of a POST is the answer', async () => {
    const bodies: string[] = [];
    const port = await serve((request, response) => {
      request.on('data', (chunk: Buffer) => bodies.push(chunk.toString()));
      request.on('end', () => response.writeHead(307, { location: '/elsewhere' }).end('moved'));
    });
    const request = { url: `http://127.0.0.1:${port}/`, method: 'POST' as const, headers: {} };
    const answer = await guarded()({ ...request, body: 'hello' }, signal);
    expect(answer.status).toBe(307);
    expect(bodies).toEqual(['hello']);
  });
});

describe('what a server answers', () => {
  test('is read up to a size, and the rest is let go of', async () => {
    const { promise: hung, resolve: hangUp } = Promise.withResolvers<void>();
    const port = await serve((_request, response) => {
      response.on('close', hangUp);
      const pour = (): void => {
        while (!response.destroyed && response.write('x'.repeat(10_000)));
      };
      response.on('drain', pour);
      pour();
    });
    const answer = await get(`http://127.0.0.1:${port}/`);
    expect(answer).toMatchObject({ status: 200, truncated: true });
    expect(answer.body.toString()).toBe('x'.repeat(1_000));
    await hung;
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['gzip, br', (body: Buffer) => brotliCompressSync(gzipSync(body))],
    ['Zstd , X-Gzip', (body: Buffer) => gzipSync(zstdCompressSync(body))],
  ])('counts as it is unpacked: %s', async (encoding, pack) => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding });
      response.end(pack(Buffer.alloc(50_000_000, 'y')));
    });
    const answer = await get(`http://127.0.0.1:${port}/`);
    expect(answer.truncated).toBe(true);
    expect(answer.body.toString()).toBe('y'.repeat(1_000));
  });

  test.each([
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['br', brotliCompressSync],
    ['zstd', zstdCompressSync],
    ['identity', (body: Buffer) => body],
    ['gzip, gzip', (body: Buffer) => gzipSync(gzipSync(body))],
  ])('is decoded, though it comes a byte at a time: %s', async (encoding, pack) => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding });
      const bytes = [...pack(Buffer.from('Grüße'))];
      const write = (): void => {
        const byte = bytes.shift();
        if (byte === undefined) response.end();
        else response.write(Buffer.from([byte]), () => setImmediate(write));
      };
      write();
    });
    const answer = await get(`http://127.0.0.1:${port}/`);
    expect([answer.body.toString(), answer.truncated]).toEqual(['Grüße', false]);
  });

  test.each([
    ['compress', 'encoding'],
    ['constructor', 'encoding'],
    ['gzip, gzip, gzip', 'encoding'],
    ['gzip', 'Z_DATA_ERROR'],
    ['deflate', 'Z_DATA_ERROR'],
    ['br', 'broke off'],
    ['zstd', 'ZSTD_error_prefix_unknown'],
  ])('that is not in its encoding %s is a failure', async (encoding, reason) => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': encoding });
      response.end('not packed at all');
    });
    await expect(get(`http://127.0.0.1:${port}/`)).rejects.toMatchObject(failed(reason));
  });

  test.each(['gzip', 'deflate', 'br', 'zstd', 'gzip, deflate'])(
    'without any bytes is empty, whatever its encoding: %s',
    async (encoding) => {
      const port = await serve((_request, response) => {
        response.writeHead(200, { 'content-encoding': encoding });
        response.end();
      });
      const answer = await get(`http://127.0.0.1:${port}/`);
      expect([answer.body.length, answer.truncated]).toEqual([0, false]);
    },
  );

  test('that was cut off is a failure', async () => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(gzipSync('x'.repeat(100)).subarray(0, 20));
    });
    await expect(get(`http://127.0.0.1:${port}/`)).rejects.toMatchObject(failed('Z_BUF_ERROR'));
  });

  test('whose data decode to nothing is a failure before its time is over', async () => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      const members = Buffer.concat(Array.from({ length: 1_000 }, () => gzipSync('')));
      const write = (): void => void response.write(members, () => setImmediate(write));
      write();
    });
    const answer = get(`http://127.0.0.1:${port}/`, { ms: 60_000 });
    await expect(answer).rejects.toMatchObject(failed('far more bytes than they decode to'));
  });

  test('that needs more memory for Zstandard than is recommended is a failure', async () => {
    const large = zstdCompressSync(Buffer.alloc(20_000_000, 'y'), {
      params: { [constants.ZSTD_c_windowLog]: 24, [constants.ZSTD_c_contentSizeFlag]: 0 },
    });
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-encoding': 'zstd' });
      response.end(large);
    });
    await expect(get(`http://127.0.0.1:${port}/`)).rejects.toMatchObject(
      failed('ZSTD_error_frameParameter_windowTooLarge'),
    );
  });

  test.each([
    ['never anything', () => {}],
    [
      'headers, a line a moment',
      (socket: Socket) => {
        socket.write('HTTP/1.1 200 OK\r\n');
        const timer = setInterval(() => socket.write('x-slow: 1\r\n'), 50);
        socket.on('close', () => clearInterval(timer));
      },
    ],
    [
      'a body, a byte a moment',
      (socket: Socket) => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n');
        const timer = setInterval(() => socket.write('x'), 50);
        socket.on('close', () => clearInterval(timer));
      },
    ],
    [
      'early hints for ever',
      (socket: Socket) => {
        const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 50);
        socket.on('close', () => clearInterval(timer));
      },
    ],
  ])('ends in time: %s', async (_what, talk) => {
    const port = await serveRaw(talk);
    const began = performance.now();
    await expect(get(`http://127.0.0.1:${port}/`, { ms: 400 })).rejects.toMatchObject(
      failed('within 0.4 s'),
    );
    expect(performance.now() - began).toBeLessThan(10_000);
  });

  test.each([
    [
      'a switch of protocols',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n',
    ],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['endless headers', `HTTP/1.1 200 OK\r\nx-long: ${'a'.repeat(40_000)}\r\n\r\n`],
    ['less than it promised', 'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf'],
  ])('is a failure: %s', async (_what, said) => {
    const port = await serveRaw((socket) => socket.once('data', () => socket.end(said)));
    await expect(get(`http://127.0.0.1:${port}/`)).rejects.toMatchObject(
      failed(/can’t be reached, or broke off/),
    );
  });

  test('may have no body', async () => {
    const port = await serve((_request, response) => response.writeHead(204).end());
    const answer = await get(`http://127.0.0.1:${port}/`);
    expect(answer).toMatchObject({ status: 204, truncated: false, body: Buffer.alloc(0) });
  });

  test.each(['http', 'https'])(
    'is not held on to where it never says a word: %s',
    async (protocol) => {
      const closed = Promise.withResolvers<void>();
      const port = await serveRaw((socket) => {
        socket.resume().on('close', () => closed.resolve());
      });
      const asked = get(`${protocol}://127.0.0.1:${port}/`, { ms: 200 });
      await expect(asked).rejects.toMatchObject(failed('within'));
      await closed.promise;
    },
    2_000,
  );

  test('is not waited for once the caller has left', async () => {
    const port = await serveRaw(() => {});
    const leaving = new AbortController();
    const asked = guarded()(
      { url: `http://127.0.0.1:${port}/`, method: 'GET', headers: {} },
      leaving.signal,
    );
    setTimeout(() => leaving.abort(new Error('gone')), 50);
    await expect(asked).rejects.toThrow('gone');
  });
});

test('TLS asks for the name of the URL, and trusts it only when it is proved', async () => {
  const certificate = readFileSync(CERTIFICATE_FILE, 'utf8');
  const server = createTlsServer(
    { cert: certificate, key: readFileSync(KEY_FILE) },
    (_request, response) => response.end('proved'),
  );
  const port = await listening(server);
  const options = { ca: certificate, resolve: async () => ['127.0.0.1'] };
  const { body } = await get(`https://127.0.0.1:${port}/`, options);
  expect(body.toString()).toBe('proved');
  await expect(get(`https://other.example:${port}/`, options)).rejects.toMatchObject(
    failed('ERR_TLS_CERT_ALTNAME_INVALID'),
  );
  await expect(get(`https://127.0.0.1:${port}/`)).rejects.toMatchObject(failed('SELF_SIGNED'));
});
