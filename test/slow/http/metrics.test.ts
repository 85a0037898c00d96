import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { OPENMETRICS, scrape, seriesOf, valueOf } from '../../support/http/metrics.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

const NAMES = fc.string({ maxLength: 24 }).map((name) => encodeURIComponent(name));
const PATHS = fc.oneof(
  NAMES.map((name) => `/${name}`),
  fc.tuple(NAMES, NAMES).map(([name, query]) => `/v1/agents/${name}?${query}`),
  NAMES.map((name) => `/v1/agents/${name}/run`),
  NAMES.map((name) => `/v1/sessions/${name}/events`),
  fc.constantFrom('/v1/agents', '/v1/webhooks', '/metrics/', '/v1/models', '/health/live'),
);
const HOSTILE = fc.record({
  path: PATHS,
  method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PURGE', 'MKCOL'),
  headers: fc.record(
    {
      accept: fc.constantFrom('text/event-stream', 'text/html', OPENMETRICS),
      'idempotency-key': NAMES,
      'user-agent': NAMES,
      'x-request-id': NAMES,
      prefer: fc.constantFrom('wait=0', 'respond-async'),
    },
    { requiredKeys: [] },
  ),
  body: fc.oneof(
    fc.string({ maxLength: 100 }),
    fc.record({ name: fc.string(), instruction: fc.string(), model: fc.string(), tool: NAMES }),
    fc.record({ name: NAMES, instruction: NAMES, model: fc.constant('scripted') }),
  ),
});
type Hostile = typeof HOSTILE extends fc.Arbitrary<infer Value> ? Value : never;

/** Sends a request over one of a few connections, and reads its answer to the end. */
const send = (url: string, key: string, { path, method, headers, body }: Hostile): Promise<void> =>
  new Promise((resolve) => {
    const sent = request(url + path, {
      method,
      headers: { 'content-type': 'application/json', 'x-api-key': key, ...headers },
    });
    sent.on('response', (response) => response.resume().on('close', resolve));
    sent.on('error', () => resolve());
    sent.end(JSON.stringify(body));
  });

let service: TestService;
beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

test('10,000 hostile requests add no series', async () => {
  const agentId = await service.createAgent();
  await service.post(`/v1/agents/${agentId}/run`, { input: 'Hello.' });
  const before = seriesOf((await scrape(service)).text);
  const requests = fc.sample(HOSTILE, { numRuns: 10_000, seed: 26 });
  const next = requests.values();
  const sendAll = async (): Promise<void> => {
    for (const hostile of next) await send(service.url, service.key, hostile);
  };
  await Promise.all(Array.from({ length: 16 }, sendAll));
  await Promise.all(
    requests.slice(0, 50).map((hostile) => send(service.url, hostile.path, hostile)),
  );
  const { text } = await scrape(service);
  expect(seriesOf(text)).toEqual(before);
  const unmatched = 'method="OTHER",route="unmatched",status="4xx"';
  expect(valueOf(text, `turnlog_http_requests_total{${unmatched}}`)).toBeGreaterThan(100);
}, 120_000);
