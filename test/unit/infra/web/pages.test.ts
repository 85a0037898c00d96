import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import { createPageReader } from '../../../../infra/web/pages.ts';

const calling = { account_id: 'a', signal: new AbortController().signal };
const readPage = createPageReader({ allowPrivate: true });
const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0)) close();
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}
const page = (type: string, body: string | Buffer) =>
  serve((_request, response) => response.writeHead(200, { 'content-type': type }).end(body));

describe('a page', () => {
  test('of HTML is its title, its text and its links', async () => {
    const url = await page(
      'text/html; charset=utf-8',
      `<html><head><title>About pears</title><style>p{color:red}</style></head><body><h1>Pears</h1>
      <script>alert(1)</script><p>They are <a href="/green">green</a>.</p><img src="x.png" alt="no"></body></html>`,
    );
    expect(await readPage(url, calling)).toBe(
      `About pears\n\n\nPears\n\nThey are green [${url}green].`,
    );
  });

  test('has links as a browser follows them', async () => {
    const origin = await page(
      'text/html',
      '<a href="/a">1</a> <a href="b?c">2</a> <a href="//x.example/d">3</a>',
    );
    expect(await readPage(`${origin}docs/page.html`, calling)).toBe(
      `1 [${origin}a] 2 [${origin}docs/b?c] 3 [http://x.example/d]`,
    );
  });

  test.each([
    ['application/json', '{"a":[1]}'],
    ['application/problem+json', '{}'],
    ['text/plain', 'as\n it is  '],
    ['text/csv; header=present', 'a,b'],
  ])('of %s is answered as it is', async (type, body) => {
    expect(await readPage(await page(type, body), calling)).toBe(body);
  });

  test.each([
    ['by its header', 'text/html; charset="iso-8859-1"', '<p>café'],
    ['by itself', 'text/html', '<meta charset="latin1"><p>café'],
  ])('is read in the encoding that is named %s', async (_how, type, body) => {
    expect(await readPage(await page(type, Buffer.from(body, 'latin1')), calling)).toBe('café');
  });

  test.each(['image/png', 'application/pdf', 'application/octet-stream', ''])(
    'of the type %j is refused',
    async (type) => {
      const url = await serve((_request, response) => {
        if (type !== '') response.setHeader('content-type', type);
        response.end('binary');
      });
      await expect(readPage(url, calling)).rejects.toMatchObject({
        code: 'web_failed',
        message: expect.stringContaining('no text'),
      });
    },
  );

  test('that is not there is told by its status', async () => {
    const url = await serve((_request, response) => response.writeHead(404).end('nothing'));
    await expect(readPage(url, calling)).rejects.toMatchObject({
      message: 'The server answers with status 404.',
    });
  });

  test('that is long says that it was cut, and one that moved where it is', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/') return response.writeHead(302, { location: '/moved' }).end();
      return response.writeHead(200, { 'content-type': 'text/plain' }).end('x'.repeat(2_000_000));
    });
    const text = await readPage(url, calling);
    expect(text.split('\n').slice(0, 2)).toEqual([
      `(From ${url}moved)`,
      '(Only the first 1048576 bytes were read.)',
    ]);
    expect(text).toHaveLength(1_048_576 + text.indexOf('xxx'));
  });
});

const MIB = 1_048_576;

test('a table of short numbers is read, as large as a page may be', async () => {
  let table = '<table>';
  for (let row = 0; table.length < MIB - 100; row += 1)
    table += `<tr><td>${row}</td><td>${7 * row}</td><td>x</td></tr>`;
  const url = await page('text/html', `${table}</table>`);
  const text = await readPage(url, calling);
  expect(text).toContain('20000');
  expect(text.length).toBeGreaterThan(MIB / 5);
}, 20_000);

test('pages of as many elements as possible take a limited amount of memory', async () => {
  const url = await page('text/html', 'a<br>'.repeat(MIB / 5));
  const before = process.memoryUsage.rss();
  let most = before;
  const timer = setInterval(() => (most = Math.max(most, process.memoryUsage.rss())), 5);
  const accounts = ['a', 'b'].map((account_id) => ({ ...calling, account_id }));
  await Promise.allSettled(accounts.map((account) => readPage(url, account)));
  clearInterval(timer);
  // With a heap of 128 MiB and V8’s default for young objects, they take 250 to 500.
  expect((most - before) / MIB).toBeLessThan(180);
}, 20_000);

describe('a hostile page', () => {
  test.each([
    // This one ends at the time limit.
    ['nested deeply', '<div>'.repeat(MIB / 5)],
    ['of open tags', '<a href="x"><b><table><td>'.repeat(MIB / 4 / 26)],
    ['of lists in lists', '<ul><li>'.repeat(MIB / 4 / 8)],
    ['of quotes in quotes', '<blockquote>'.repeat(MIB / 4 / 12)],
    ['of attributes', `<p ${'a '.repeat(MIB / 2 - 8)}>`],
    ['of a tag that never ends', `<p ${'<'.repeat(MIB - 8)}`],
    ['of entities', '&amp'.repeat(MIB / 4)],
    ['of blanks', ' '.repeat(MIB)],
    ['of comments', '<!--'.repeat(MIB / 4)],
    ['of tables', `<table>${'<tr><td colspan=1000 rowspan=1000>x'.repeat(20_000)}`],
  ])(
    '%s does not keep the event loop, and ends in time',
    async (_what, body) => {
      const url = await page('text/html', `<body>${body}`.slice(0, MIB));
      let longest = 0;
      let last = performance.now();
      const timer = setInterval(() => {
        longest = Math.max(longest, performance.now() - last);
        last = performance.now();
      }, 5);
      const began = performance.now();
      const told = await readPage(url, calling).catch((error: Error) => error.message);
      clearInterval(timer);
      expect(typeof told).toBe('string');
      expect(performance.now() - began).toBeLessThan(10_000);
      // On the main thread some of them would keep it for more than five seconds.
      expect(longest).toBeLessThan(2_500);
    },
    20_000,
  );
});

test('pages of one account leave places for another one', async () => {
  const waiting: (() => void)[] = [];
  const url = await serve((_request, response) =>
    waiting.push(() => response.writeHead(200, { 'content-type': 'text/plain' }).end('here')),
  );
  const ofOne = Array.from({ length: 20 }, () => readPage(url, calling));
  while (waiting.length < 8) await new Promise((resolve) => setTimeout(resolve, 5));
  const ofOther = readPage(url, { ...calling, account_id: 'b' });
  while (waiting.length < 9) await new Promise((resolve) => setTimeout(resolve, 5));
  waiting.splice(8, 1)[0]!();
  expect(await ofOther).toBe('here');
  const ending = setInterval(() => {
    for (const end of waiting.splice(0)) end();
  }, 5);
  expect(await Promise.all(ofOne)).toHaveLength(20);
  clearInterval(ending);
});
