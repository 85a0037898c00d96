import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { comparable, expectFailure } from '../../support/http/failures.ts';
import { exchange, rawRequest } from '../../support/http/rawHttp.ts';
import {
  apiClient,
  startTestService,
  TEST_KEY,
  type TestService,
} from '../../support/http/service.ts';

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const get = (headers: Record<string, string>) =>
  apiClient(service.url, undefined).get('/v1/models', headers);

describe('a key', () => {
  test.each([
    ['in x-api-key', { 'x-api-key': TEST_KEY }],
    ['as a bearer token', { authorization: `Bearer ${TEST_KEY}` }],
    ['as a bearer token in any case', { authorization: `bearer   ${TEST_KEY}` }],
    ['in both', { authorization: `Bearer ${TEST_KEY}`, 'x-api-key': TEST_KEY }],
    ['beside a proxy’s own credentials', { authorization: 'Basic eDp5', 'x-api-key': TEST_KEY }],
  ])('is taken %s', async (_what, headers) => {
    expect((await get(headers as Record<string, string>)).status).toBe(200);
  });

  test.each([
    ['another scheme', { authorization: `Basic ${TEST_KEY}` }],
    ['no scheme', { authorization: TEST_KEY }],
    ['no token', { authorization: 'Bearer ' }],
    ['two tokens', { authorization: `Bearer ${TEST_KEY} ${TEST_KEY}` }],
    ['a wrong token', { authorization: 'Bearer x' }],
  ])('is not taken from %s, which is answered like any other wrong key', async (_what, headers) => {
    const reply = await get(headers);
    expectFailure(reply, 'unauthorized');
    expect(reply.headers.get('www-authenticate')).toBe('Bearer');
    expect(comparable(reply)).toBe(comparable(await get({})));
  });

  test('is refused where another one stands beside it, also a second bearer token', async () => {
    const two = await get({ authorization: 'Bearer other', 'x-api-key': TEST_KEY });
    expect(expectFailure(two, 'unauthorized').error).toContain('and another one in Authorization');
    const token = ['authorization', `Bearer ${TEST_KEY}`] as const;
    const twice = rawRequest('GET /v1/models', [token, ['authorization', 'Bearer other']]);
    expectFailure((await exchange(service.url, twice))[0]!, 'unauthorized');
  });
});
