/** Mistakes of a new client: each answer says what to change. */
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startTestService, type TestService } from '../../support/http/service.ts';

let service: TestService;
let agent: string;
beforeAll(async () => {
  service = await startTestService();
  agent = await service.createAgent();
});
afterAll(() => service.close());
const runPath = () => `/v1/agents/${agent}/run`;

test('JSON that is broken: the answer says where', async () => {
  expect(await service.post(runPath(), '{"input":\n  hello}')).toMatchObject({
    status: 400,
    body: {
      code: 'invalid_json',
      error: 'The body is not JSON: line 2, column 3 has an unexpected "h".',
    },
  });
});

test('a slash too many: the answer names the path', async () => {
  expect(await service.post(`${runPath()}/`, { input: 'Hello' })).toMatchObject({
    status: 404,
    body: { error: `There is nothing at this path. Did you mean ${runPath()}?` },
  });
});

test('`session_id: null` counts as absent, for retries too', async () => {
  const key = { 'idempotency-key': 'one' };
  const started = await service.post(runPath(), { input: 'Hello', session_id: null }, key);
  expect(started.status).toBe(200);
  const retried = await service.post(runPath(), { input: 'Hello' }, key);
  expect(retried.headers.get('idempotency-replayed')).toBe('true');
  expect(retried.body.data).toEqual(started.body.data);
  expect((await service.post(runPath(), { input: null })).status).toBe(400);
});

test('fields of a body where none is expected are named, and nothing is done; `{}` counts as none', async () => {
  const { session_id } = (await service.post(runPath(), { input: 'Hello' })).body.data;
  const operations = [
    ['DELETE', `/v1/sessions/${session_id}`],
    ['POST', `/v1/agents/${agent}/erase`],
  ] as const;
  for (const [method, path] of operations) {
    const message = '"note" must be removed: this operation has no fields.';
    expect(await service.send(method, path, { note: 'asked by mail' })).toMatchObject({
      status: 400,
      body: { code: 'invalid_request', details: { note: { path: '/note', message } } },
    });
    expect((await service.get(path.replace(/\/erase$/, ''))).status).toBe(200);
    expect((await service.send(method, path, {})).status).toBe(200);
  }
});

/** Sends an empty body in chunks, as clients and proxies do that do not know its length. */
async function sendEmptyChunks(method: string, path: string): Promise<number | undefined> {
  const headers = { 'x-api-key': service.key, 'transfer-encoding': 'chunked' };
  const sent = request(`${service.url}${path}`, { method, headers }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  response.resume();
  return response.statusCode;
}

test('an empty body in chunks counts as none where it may be absent', async () => {
  agent = await service.createAgent();
  const { session_id } = (await service.post(runPath(), { input: 'Hello' })).body.data;
  expect(await sendEmptyChunks('POST', `/v1/sessions/${session_id}/cancel`)).toBe(200);
  expect(await sendEmptyChunks('DELETE', `/v1/sessions/${session_id}`)).toBe(200);
  expect(await sendEmptyChunks('POST', '/v1/agents')).toBe(415);
});
