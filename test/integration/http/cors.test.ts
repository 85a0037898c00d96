import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import { startTestService, TEST_KEY, type TestService } from '../../support/http/service.ts';

const LISTED = 'https://app.example.com';
const ASKED = {
  origin: LISTED,
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type',
};

let service: TestService;
const ask = (method: string, path: string, headers: Record<string, string>): Promise<Response> =>
  fetch(service.url + path, { method, headers });
const list = (text: string | null): string[] => (text ?? '').toLowerCase().split(/, ?/).toSorted();

describe('with CORS_ORIGINS', () => {
  beforeAll(async () => {
    service = await startTestService(
      { text: 'Hi.' },
      { CORS_ORIGINS: `${LISTED},http://localhost:5173` },
    );
  });
  afterAll(() => service.close());

  test('a preflight is told what a page may send', async () => {
    const { status, headers } = await ask('OPTIONS', '/v1/agents/x/run', ASKED);
    expect(status).toBe(204);
    expect(headers.get('access-control-allow-origin')).toBe(LISTED);
    expect(list(headers.get('access-control-allow-methods'))).toEqual([
      'delete',
      'get',
      'head',
      'patch',
      'post',
      'put',
    ]);
    expect(list(headers.get('access-control-allow-headers'))).toEqual([
      'authorization',
      'content-type',
      'idempotency-key',
      'if-match',
      'if-none-match',
      'last-event-id',
      'prefer',
      'x-api-key',
      'x-request-id',
    ]);
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    expect(list(headers.get('vary'))).toContain('origin');
  });

  test('every answer to a page can be read by it, failures too', async () => {
    const key = { 'x-api-key': TEST_KEY };
    for (const [status, path, more] of [
      [200, '/v1/models', key],
      [200, '/health/live', {}],
      [401, '/v1/models', {}],
      [400, '/v1/models?x=1', key],
      [404, '/nothing', key],
    ] as const) {
      const { status: answered, headers } = await ask('GET', path, { origin: LISTED, ...more });
      expect([path, answered]).toEqual([path, status]);
      expect(headers.get('access-control-allow-origin')).toBe(LISTED);
      expect(list(headers.get('vary'))).toContain('origin');
      expect(list(headers.get('access-control-expose-headers'))).toEqual([
        'etag',
        'idempotency-replayed',
        'link',
        'location',
        'preference-applied',
        'ratelimit',
        'ratelimit-policy',
        'retry-after',
        'www-authenticate',
        'x-request-id',
        'x-turnlog-visible',
      ]);
    }
  });

  test.each(['https://evil.example', 'null', `${LISTED}.evil.example`, 'http://app.example.com'])(
    'a page of another origin is told nothing: %s',
    async (origin) => {
      const preflight = await ask('OPTIONS', '/v1/agents', { ...ASKED, origin });
      const answer = await ask('GET', '/v1/models', { origin, 'x-api-key': TEST_KEY });
      expect([preflight.status, answer.status]).toEqual([405, 200]);
      for (const { headers } of [preflight, answer]) {
        expect([...headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual([]);
        expect(list(headers.get('vary'))).toContain('origin');
      }
    },
  );
});

describe('with CORS_ORIGINS=*', () => {
  beforeAll(async () => {
    service = await startTestService({ text: 'Hi.' }, { CORS_ORIGINS: '*' });
  });
  afterAll(() => service.close());

  test('any page may call', async () => {
    for (const [method, headers] of [
      ['OPTIONS', ASKED],
      ['GET', { origin: 'https://any.example', 'x-api-key': TEST_KEY }],
    ] as const) {
      const answer = await ask(method, '/v1/models', headers);
      expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    }
  });
});

test.each([`${LISTED}/`, 'app.example.com', `${LISTED} http://localhost:5173`])(
  'CORS_ORIGINS=%s is refused with an example',
  (text) => {
    expect(() => parseConfig({ CORS_ORIGINS: text })).toThrow(
      'CORS_ORIGINS must be * or origins separated by commas, without a path or a slash at the end, such as https://app.example.com,http://localhost:5173',
    );
  },
);

describe('without CORS_ORIGINS', () => {
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.close());

  test('no page of another origin may call', async () => {
    const preflight = await ask('OPTIONS', '/v1/agents', ASKED);
    expect([preflight.status, list(preflight.headers.get('allow'))]).toEqual([
      405,
      ['get', 'head', 'post'],
    ]);
    expect(await preflight.json()).toMatchObject({
      code: 'method_not_allowed',
      error: expect.stringContaining(`for example CORS_ORIGINS=${LISTED}.`),
    });
    const answer = await ask('GET', '/v1/models', { origin: LISTED, 'x-api-key': TEST_KEY });
    expect([...answer.headers.keys()].filter((name) => name.startsWith('access-control'))).toEqual(
      [],
    );
    expect(answer.headers.get('vary') ?? '').not.toMatch(/origin/i);
  });
});
