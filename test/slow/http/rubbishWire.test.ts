import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { connect } from 'node:net';
import { once } from 'node:events';
import { expectFailure } from '../../support/http/failures.ts';
import { eventually, type WatchedLog, watchLog } from '../../support/processes/operator.ts';
import { exchange, rawRequest } from '../../support/http/rawHttp.ts';
import {
  startTestService,
  TEST_KEY,
  type Reply,
  type TestService,
} from '../../support/http/service.ts';
import { LIMITS } from '../../../shared/limits.ts';

let service: TestService;
let log: WatchedLog;
let agent: string;
beforeAll(async () => {
  service = await startTestService();
  log = await watchLog(service.folder);
  agent = await service.createAgent();
});
beforeEach(() => service.model.use({ text: 'Hello.' }));
afterAll(async () => {
  await log.close();
  await service.close();
});

const KEY = ['x-api-key', TEST_KEY] as const;
const JSON_TYPE = ['content-type', 'application/json'] as const;
const AGENT = JSON.stringify({ name: 'Sums', instruction: 'Add up.', model: 'scripted' });

async function answerTo(bytes: string | Buffer): Promise<Reply> {
  const head = await log.head();
  const [reply] = await exchange(service.url, bytes);
  expect(reply).toBeDefined();
  expect((await service.get('/v1/models')).status).toBe(200);
  expect(await log.head()).toBe(head);
  return reply!;
}

test('a header Accept that would take long to parse is ignored', async () => {
  const accept = `text/event-stream${','.repeat(LIMITS.http.acceptChars)}`;
  const headers = [KEY, JSON_TYPE, ['accept', accept]] as const;
  const run = rawRequest(`POST /v1/agents/${agent}/run`, headers, JSON.stringify({ input: 'Hi.' }));
  const [reply] = await exchange(service.url, run);
  expect([reply?.status, reply?.headers.get('content-type')]).toEqual([
    200,
    'application/json; charset=utf-8',
  ]);
  const encodings = ['accept-encoding', `gzip${','.repeat(LIMITS.http.acceptChars)}`] as const;
  const [plain] = await exchange(service.url, rawRequest('GET /openapi.json', [encodings]));
  expect([plain?.status, plain?.headers.get('content-encoding')]).toEqual([200, null]);
});

describe('a path', () => {
  test.each([
    '/',
    '/v1',
    '/v1/',
    '/v2/agents',
    '/V1/agents',
    '/v1/Agents',
    '/v1/agents/',
    '//v1/agents',
    '/v1//agents',
    '/v1/agents//run',
    '/v1/agents/x/y/run',
    '/v1/../v1/agents',
    '/v1/agents/../agents',
    '/v1/%2e%2e/v1/agents',
    '/%2e%2e/%2e%2e/etc/passwd',
    '/../../etc/passwd',
    '/v1/agents%00',
    '/%zz',
    '/%',
    '/v1/agents%2f',
    '/v1\\agents',
    '/health',
    '/health/live/',
    '/openapi.json/',
    '/.git/config',
    '/v1/agents;x=1',
    '*',
  ])('that is none of ours is 404: %s', async (path) => {
    expectFailure(await answerTo(rawRequest(`GET ${path}`, [KEY])), 'not_found');
  });

  test('that is mistyped is 404 with the one that was probably meant', async () => {
    const reply = await answerTo(rawRequest('GET /agents/', [KEY]));
    expect(expectFailure(reply, 'not_found').error).toContain('Did you mean /v1/agents?');
  });

  test.each([
    '..',
    '%2e%2e',
    '%00',
    '%zz',
    '%F0%9F%98%80',
    '.',
    '~',
    "';--",
    '%',
    '%2F',
    '%E0%A4%A',
  ])('with an odd agent id in it names no agent: %s', async (id) => {
    expectFailure(await answerTo(rawRequest(`GET /v1/agents/${id}`, [KEY])), 'agent_not_found');
    expectFailure(await answerTo(rawRequest(`GET /v1/sessions/${id}`, [KEY])), 'session_not_found');
    expectFailure(
      await answerTo(rawRequest(`POST /v1/agents/${id}/run`, [KEY, JSON_TYPE], '{"input":"x"}')),
      'agent_not_found',
    );
  });

  test('in absolute form is served', async () => {
    expect(
      (await answerTo(rawRequest('GET http://elsewhere.example/v1/models', [KEY]))).status,
    ).toBe(200);
  });

  test.each(['http://[bad/v1', 'http://', 'http://a:99999/', 'http://%[&@/v1'])(
    'that is no URL is 400: %s',
    async (target) => {
      const reply = await answerTo(rawRequest(`GET ${target}`, [KEY]));
      expect(expectFailure(reply, 'invalid_request').error).toMatch(
        /^The request (target )?is not/,
      );
      expect(reply.headers.get('connection')).toBe('close');
    },
  );

  test('of many kilobytes is 404 or, beyond what a header may hold, 431', async () => {
    expectFailure(await answerTo(rawRequest(`GET /${'x'.repeat(10_000)}`, [KEY])), 'not_found');
    const reply = await answerTo(rawRequest(`GET /${'x'.repeat(100_000)}`, [KEY]));
    expect([
      reply.status,
      reply.body.status,
      reply.body.success,
      reply.body.code,
      reply.body.request_id,
    ]).toEqual([431, 431, false, 'invalid_request', reply.headers.get('x-request-id')]);
  });
});

describe('a query', () => {
  test.each([
    'unknown=1',
    '__proto__=1',
    '__proto__[pretty]=true',
    'constructor=1',
    'constructor[prototype][x]=1',
    'pretty[]=true',
    'pretty=1',
    'pretty=',
    'pretty=TRUE',
    'pretty=true&pretty=true',
    '=',
    '%00=1',
    '%zz=%zz',
    'toString=1',
    '&&&x',
  ])('that is not described is refused, on every route: %s', async (query) => {
    for (const path of [
      '/v1/agents',
      `/v1/agents/${agent}`,
      '/v1/sessions',
      '/v1/models',
      '/v1/tools',
      '/health/live',
      '/openapi.json',
    ]) {
      const { details } = expectFailure(
        await answerTo(rawRequest(`GET ${path}?${query}`, [KEY])),
        'invalid_request',
      );
      expect(Object.values(details!)).toEqual([
        {
          message: expect.stringMatching(
            /must be true or false|must be given once|is not a known field; known are pretty/,
          ),
          path: expect.stringMatching(/^query\//),
        },
      ]);
    }
    expectFailure(
      await answerTo(rawRequest(`POST /v1/agents?${query}`, [KEY, JSON_TYPE], AGENT)),
      'invalid_request',
    );
  });
});

describe('a method', () => {
  test.each(['PUT', 'PATCH', 'DELETE'])(
    'that a path does not have is 405 with what it has: %s',
    async (method) => {
      const reply = await answerTo(rawRequest(`${method} /v1/agents`, [KEY]));
      expectFailure(reply, 'method_not_allowed');
      expect(reply.headers.get('allow')!.split(', ').toSorted()).toEqual(['GET', 'HEAD', 'POST']);
    },
  );

  test.each(['TRACE', 'PROPFIND', 'QUERY', 'PURGE'])(
    'that nothing here has is 405 too: %s',
    async (method) => {
      expectFailure(
        await answerTo(rawRequest(`${method} /v1/agents`, [KEY])),
        'method_not_allowed',
      );
    },
  );

  test('that only another path has is 405', async () => {
    expectFailure(
      await answerTo(rawRequest(`GET /v1/agents/${agent}/run`, [KEY])),
      'method_not_allowed',
    );
    expectFailure(
      await answerTo(rawRequest('POST /v1/sessions', [KEY, JSON_TYPE], '{}')),
      'method_not_allowed',
    );
  });

  test.each(['get', 'G', 'GETX', 'G@T', ''])(
    'that is not one of HTTP is 400: %j',
    async (method) => {
      expectFailure(await answerTo(rawRequest(`${method} /v1/agents`, [KEY])), 'invalid_request');
    },
  );

  test('CONNECT is refused like any other', async () => {
    expectFailure(await answerTo(rawRequest('CONNECT example.com:443')), 'method_not_allowed');
  });

  test('HEAD answers the headers of GET and no body', async () => {
    for (const path of ['/v1/agents', '/health/live', '/v1/agents/unknown']) {
      const [head] = await exchange(service.url, rawRequest(`HEAD ${path}`, [KEY]), {
        bodiless: true,
      });
      const [get] = await exchange(service.url, rawRequest(`GET ${path}`, [KEY]));
      expect([head!.status, head!.headers.get('content-type')]).toEqual([
        get!.status,
        get!.headers.get('content-type'),
      ]);
      // A list is not made to be measured (RFC 9110 §9.3.2).
      expect([null, get!.headers.get('content-length')]).toContain(
        head!.headers.get('content-length'),
      );
    }
  });

  test('OPTIONS is 405 with what the path has, and 404 where there is none', async () => {
    const reply = await answerTo(rawRequest(`OPTIONS /v1/agents/${agent}/run`));
    expectFailure(reply, 'method_not_allowed');
    expect(reply.headers.get('allow')).toBe('POST');
    expectFailure(await answerTo(rawRequest('OPTIONS /nothing')), 'not_found');
  });
});

describe('headers', () => {
  test('that are sent twice are refused where one counts', async () => {
    expectFailure(await answerTo(rawRequest('GET /v1/agents', [KEY, KEY])), 'unauthorized');
    expectFailure(
      await answerTo(rawRequest('GET /v1/agents', [KEY, ['X-API-Key', 'other']])),
      'unauthorized',
    );
    expectFailure(
      await answerTo(
        rawRequest('POST /v1/agents', [KEY, JSON_TYPE, ['content-type', 'text/plain']], AGENT),
      ),
      'unsupported_media_type',
    );
    expectFailure(
      await answerTo(
        rawRequest('POST /v1/agents', [KEY, ['content-type', 'text/plain'], JSON_TYPE], AGENT),
      ),
      'unsupported_media_type',
    );
    expectFailure(
      await answerTo(
        rawRequest('POST /v1/agents', [KEY, JSON_TYPE, ['content-length', '5']], AGENT),
      ),
      'invalid_request',
    );
  });

  test.each([
    [
      'conflicting lengths',
      [
        ['content-length', '5'],
        ['content-length', '6'],
      ],
    ],
    [
      'a length and chunks',
      [
        ['content-length', '5'],
        ['transfer-encoding', 'chunked'],
      ],
    ],
    ['a negative length', [['content-length', '-1']]],
    ['a length that is no number', [['content-length', '1e3']]],
    ['an endless length', [['content-length', '9'.repeat(40)]]],
    ['an unknown transfer encoding', [['transfer-encoding', 'chunked, nonsense']]],
    ['a NUL', [['x-nul', 'a\0b']]],
    ['a line folded', [['x-folded', 'a\r\n b']]],
    ['a space in a name', [['x folded', 'a']]],
  ] as const)('with %s are 400', async (_what, headers) => {
    expectFailure(
      await answerTo(rawRequest('POST /v1/agents', [KEY, JSON_TYPE, ...headers])),
      'invalid_request',
    );
  });

  test('of 100 KB are 431', async () => {
    const reply = await answerTo(
      rawRequest('GET /v1/agents', [KEY, ['x-long', 'x'.repeat(100_000)]]),
    );
    expect([reply.status, reply.body.code]).toEqual([431, 'invalid_request']);
    expect(reply.body.error).toBe('The target and the headers are too large.');
  });

  test('of more than may be sent are 431, and as many as may be sent are not', async () => {
    const names = Array.from(
      { length: LIMITS.http.headers - 2 },
      (_, at) => [`x-${at}`, 'a'] as const,
    );
    const most = rawRequest('GET /v1/models', [KEY, ...names]);
    const tooMany = rawRequest('GET /v1/models', [KEY, ...names, ['x-more', 'a']]);
    const replies = await exchange(service.url, most + tooMany + most, { count: 3 });
    expect(replies.map(({ status }) => status)).toEqual([200, 431]);
    expect(replies[1]!.body).toMatchObject({
      code: 'invalid_request',
      error: `The request has more than ${LIMITS.http.headers} headers.`,
      request_id: replies[1]!.headers.get('x-request-id'),
    });
    expect((await answerTo(rawRequest('GET /', names.concat(names)))).status).toBe(431);
  });

  test('without Host are 400 in HTTP/1.1 and enough in HTTP/1.0', async () => {
    expectFailure(
      await answerTo(`GET /v1/models HTTP/1.1\r\nx-api-key: ${TEST_KEY}\r\n\r\n`),
      'invalid_request',
    );
    expect(
      (await answerTo(`GET /v1/models HTTP/1.0\r\nx-api-key: ${TEST_KEY}\r\n\r\n`)).status,
    ).toBe(200);
  });

  test.each([
    'Host: a\r\nHost: b',
    'Host: a\r\nhost: a',
    'Host: a b',
    'Host: [::1',
    'Host: a/b',
    'Host: u@a',
    'Host: a:b',
  ])('with %j for a host are 400', async (hosts) => {
    for (const version of ['1.0', '1.1'])
      expectFailure(
        await answerTo(
          `GET /v1/models HTTP/${version}\r\nx-api-key: ${TEST_KEY}\r\n${hosts}\r\n\r\n`,
        ),
        'invalid_request',
      );
  });

  test.each(['', 'a', 'a_b.example:80', '127.0.0.1:', '[::1]:3000', '[fe80::1%25eth0]', 'x%2Dy'])(
    'with the host %j are served',
    async (host) => {
      const request = `GET /v1/models HTTP/1.1\r\nHost: ${host}\r\nx-api-key: ${TEST_KEY}\r\n\r\n`;
      expect((await answerTo(request)).status).toBe(200);
    },
  );

  test('of HTTP/1.0 that expect to be told to go on are not: it has no such answer', async () => {
    const length = Buffer.byteLength(AGENT);
    const head = `Host: a\r\nx-api-key: ${TEST_KEY}\r\nContent-Type: application/json\r\nContent-Length: ${length}`;
    const request = `POST /v1/agents HTTP/1.0\r\n${head}\r\nExpect: 100-continue\r\n\r\n${AGENT}`;
    expect((await exchange(service.url, request))[0]!.status).toBe(200);
  });

  test('with a transfer coding beside the chunks are 415', async () => {
    const chunks = `${AGENT.length.toString(16)}\r\n${AGENT}\r\n0\r\n\r\n`;
    const head = [KEY, JSON_TYPE, ['transfer-encoding', 'gzip, chunked']] as const;
    expectFailure(
      await answerTo(`${rawRequest('POST /v1/agents', head)}${chunks}`),
      'unsupported_media_type',
    );
  });

  test('of methods that HTTP has and we do not are 405 where there is a path, and 404 elsewhere', async () => {
    for (const method of ['TRACE', 'PROPFIND', 'PUT', 'OPTIONS']) {
      const there = await answerTo(rawRequest(`${method} /v1/agents`, [KEY]));
      expectFailure(there, 'method_not_allowed');
      expect(there.headers.get('allow')).toContain('POST');
      const elsewhere = await answerTo(rawRequest(`${method} /v1/nowhere`, [KEY]));
      expectFailure(elsewhere, 'not_found');
    }
  });

  test('with an expectation or an upgrade that is not ours are served without it', async () => {
    expect(
      (await answerTo(rawRequest('GET /v1/models', [KEY, ['expect', 'miracles']]))).status,
    ).toBe(200);
    expect(
      (
        await answerTo(
          rawRequest('GET /v1/models', [KEY, ['connection', 'upgrade'], ['upgrade', 'websocket']]),
        )
      ).status,
    ).toBe(200);
  });
});

describe('what is not HTTP', () => {
  test.each([
    ['text', 'hello\r\n\r\n'],
    ['binary', Buffer.from([0, 1, 2, 255, 254, 13, 10, 13, 10])],
    ['a TLS hello', Buffer.from('16030100a5010000a10303', 'hex')],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['HTTP/9.9', 'GET / HTTP/9.9\r\nhost: x\r\n\r\n'],
    ['no path', 'GET\r\n\r\n'],
    [
      'broken chunks',
      rawRequest('POST /v1/agents', [KEY, JSON_TYPE, ['transfer-encoding', 'chunked']]).concat(
        'zz\r\n{}\r\n0\r\n\r\n',
      ),
    ],
  ])('is answered 400 and the connection closed: %s', async (_what, bytes) => {
    expectFailure(await answerTo(bytes), 'invalid_request');
  });

  test('does no harm when the client goes away in the middle of it', async () => {
    const { hostname, port } = new URL(service.url);
    for (const bytes of [
      '',
      'GET',
      rawRequest('POST /v1/agents', [KEY, JSON_TYPE, ['content-length', '100']]),
      `${rawRequest('POST /v1/agents', [KEY, JSON_TYPE, ['content-length', '100']])}{"name`,
      rawRequest('GET /v1/agents', [KEY]),
    ]) {
      const socket = connect(Number(port), hostname);
      await once(socket, 'connect');
      socket.write(bytes);
      socket.resetAndDestroy();
      await once(socket, 'close');
    }
    expect((await service.get('/v1/models')).status).toBe(200);
  });
});

describe('a connection', () => {
  test('answers pipelined requests in order, failures among them', async () => {
    const replies = await exchange(
      service.url,
      [
        rawRequest('GET /v1/models', [KEY]),
        rawRequest('POST /v1/agents', [KEY, JSON_TYPE], '{'),
        rawRequest('GET /health/live'),
      ].join(''),
      { count: 3 },
    );
    expect(replies.map(({ status }) => status)).toEqual([200, 400, 200]);
  });

  test('is cut where more requests wait for their answers than it may have', async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => (release = resolve));
    service.model.use(async () => {
      await held;
      return { text: 'Late.' };
    });
    const run = rawRequest(`POST /v1/agents/${agent}/run`, [KEY, JSON_TYPE], '{"input":"x"}');
    expect(
      await exchange(service.url, run.repeat(LIMITS.http.pipelined + 1), {
        count: LIMITS.http.pipelined + 1,
      }),
    ).toEqual([]);
    // Requests that are refused for their targets wait, and are counted, likewise.
    const refused = rawRequest('GET http://[').repeat(LIMITS.http.pipelined);
    expect(await exchange(service.url, run + refused, { count: 2 })).toEqual([]);
    release();
    await eventually(
      () => service.get('/health/ready'),
      ({ body }) => body.data.runs_in_flight === 0,
    );
  });

  test('answers what came before the rubbish first', async () => {
    const replies = await exchange(
      service.url,
      `${rawRequest('GET /v1/models', [KEY])}rubbish\r\n\r\n`,
      { count: 2 },
    );
    expect(replies.map(({ status }) => status)).toEqual([200, 400]);
  });
});
