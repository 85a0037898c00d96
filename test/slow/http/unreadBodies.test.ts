import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exchange, rawRequest } from '../../support/http/rawHttp.ts';
import { startTestService, TEST_KEY, type TestService } from '../../support/http/service.ts';
import { sendSlowly } from '../../support/http/slowSender.ts';
import { newKey, clientWith } from '../../support/processes/operator.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';

let service: TestService;
let reader: string;
beforeAll(async () => {
  service = await startTestService();
  const key = await newKey(service.folder, { scopes: ['agents:read'] });
  await clientWith(service.url, key);
  reader = key.api_key;
});
afterAll(() => service.close());

const KEY = ['x-api-key', TEST_KEY] as const;
const JSON_TYPE = ['content-type', 'application/json'] as const;
const LONG = ['content-length', '1000000'] as const;
const CHUNKED = ['transfer-encoding', 'chunked'] as const;
/** A chunk of one byte. What is none would be refused itself, where it comes before the answer. */
const CHUNK = '1\r\nx\r\n';

describe('a body that is still to come', () => {
  test.each([
    ['without a key', 401, 'POST /v1/agents', [JSON_TYPE]],
    ['with an unknown key', 401, 'POST /v1/agents', [JSON_TYPE, ['x-api-key', 'unknown']]],
    ['without the scope', 403, 'POST /v1/agents', [JSON_TYPE, ['x-api-key', 'READER']]],
    ['to nowhere', 404, 'POST /v1/nothing', [KEY, JSON_TYPE]],
    ['with another method', 405, 'PUT /v1/agents', [KEY, JSON_TYPE]],
    ['with a wrong query', 400, 'POST /v1/agents?x=1', [KEY, JSON_TYPE]],
    ['of another type', 415, 'POST /v1/agents', [KEY, ['content-type', 'text/plain']]],
    ['of a request that has none', 200, 'GET /v1/agents', [KEY]],
  ] as const)(
    '%s does not hold the answer up, and is not waited for: %i',
    async (_, status, line, headers) => {
      for (const [length, piece] of [
        [LONG, 'x'],
        [CHUNKED, CHUNK],
      ] as const) {
        const sent = [...headers, length].map(([name, value]): [string, string] => [
          name,
          value === 'READER' ? reader : value,
        ]);
        const sender = await sendSlowly(service.url, rawRequest(line, sent), { piece });
        const answer = await sender.ended();
        expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
        expect(answer).toMatch(/\r\nconnection: close\r\n/i);
      }
    },
  );

  test('that is too long by its declaration is refused unread', async () => {
    const headers = [KEY, JSON_TYPE, ['content-length', '2097153']] as const;
    const sender = await sendSlowly(service.url, rawRequest('POST /v1/agents', headers));
    expect(await sender.ended()).toMatch(/^HTTP\/1.1 413 /);
  });

  test('is cut where the client goes on sending after its answer', async () => {
    const sender = await sendSlowly(service.url, rawRequest('POST /v1/nothing', [KEY, LONG]));
    await new Promise((resolve) => sender.socket.once('close', resolve));
    expect(sender.received()).toMatch(/^HTTP\/1.1 404 /);
  });

  test('leaves the client time to read its answer, however much it sends', async () => {
    const headers = [['x-api-key', 'unknown'], JSON_TYPE] as const;
    const body = 'x'.repeat(2_000_000);
    for (let round = 0; round < 5; round += 1) {
      const [reply] = await exchange(service.url, rawRequest('POST /v1/agents', headers, body));
      expect(reply?.status).toBe(401);
    }
  });

  test('does not keep any of many clients from its answer, though not all bodies are read', async () => {
    const headers = [['x-api-key', 'unknown'], JSON_TYPE] as const;
    const request = rawRequest('POST /v1/agents', headers, 'x'.repeat(2_000_000));
    const clients = Array.from({ length: 3 * LIMITS.http.discarded }, () =>
      exchange(service.url, request),
    );
    for (const [reply] of await Promise.all(clients)) expect([401, 429]).toContain(reply?.status);
  });

  test('is asked for only when it is wanted', async () => {
    const expecting = [['expect', '100-continue'], JSON_TYPE, ['content-length', '2']] as const;
    const stranger = await sendSlowly(service.url, rawRequest('POST /v1/agents', expecting), {
      everyMs: 10_000,
    });
    expect(await stranger.ended()).toMatch(/^HTTP\/1.1 401 /);
    const [first] = await exchange(service.url, rawRequest('POST /v1/agents', [KEY, ...expecting]));
    expect(first?.status).toBe(100);
  });
});

describe('a small body', () => {
  test('that comes a moment after its headers leaves the connection to the next request', async () => {
    const headers = [KEY, ['content-length', '10'], ['content-type', 'text/plain']] as const;
    const sender = await sendSlowly(service.url, rawRequest('POST /v1/agents', headers), {
      everyMs: 10_000,
    });
    sender.socket.write('x'.repeat(10));
    await sleep(200);
    sender.socket.write(rawRequest('GET /health/live', [['connection', 'close']]));
    const answers = await sender.ended();
    expect(answers.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 415', 'HTTP/1.1 200']);
  });

  test('that was refused goes before the next request; a long one ends the connection', async () => {
    const refused = (length: number): string =>
      rawRequest('POST /v1/agents', [KEY, ['content-type', 'text/plain']], 'x'.repeat(length));
    const next = rawRequest('GET /health/live');
    const statuses = async (bytes: string): Promise<number[]> =>
      (await exchange(service.url, bytes, { count: 2 })).map(({ status }) => status);
    expect(await statuses(refused(1_000) + next)).toEqual([415, 200]);
    expect(await statuses(refused(2_000_000) + next)).toEqual([415]);
  });
});

test('a connection whose requests are answered whole is kept', async () => {
  const { socket, received } = await sendSlowly(
    service.url,
    rawRequest('POST /v1/agents', [KEY, JSON_TYPE], '{}'),
    { everyMs: 10_000 },
  );
  const closed = new Promise((resolve) => socket.once('end', resolve));
  expect(await resolvesWithin(closed, 1_500)).toBe(false);
  expect(received()).toMatch(/^HTTP\/1.1 400 /);
  expect(received()).not.toMatch(/connection: close/i);
  socket.destroy();
});
