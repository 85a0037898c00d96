/** Clients that say next to nothing, and more of them than may connect. */
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../shared/limits.ts';
import { exchange, rawRequest } from '../support/http/rawHttp.ts';
import { TEST_KEY } from '../support/http/service.ts';
import { sendSlowly } from '../support/http/slowSender.ts';
import { size } from '../support/jest/size.ts';
import { eventually } from '../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const MAX_CONNECTIONS = size({ small: 500, full: 4_000 });

let folder: string;
let server: ServerProcess;
let url: string;
beforeAll(async () => {
  folder = await temporaryFolder();
  server = startServerProcess({
    DATA_DIR: folder,
    BOOTSTRAP_API_KEY: TEST_KEY,
    MAX_CONNECTIONS: String(MAX_CONNECTIONS),
  });
  url = await server.ready;
});
afterAll(async () => {
  server.kill('SIGKILL');
  await server.exited;
  await rm(folder, { recursive: true });
});

async function open(count: number): Promise<{ sockets: Socket[]; left: () => number }> {
  const { hostname, port } = new URL(url);
  let left = 0;
  const sockets: Socket[] = [];
  for (let at = 0; at < count; at += 1) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined).on('close', () => (left -= 1));
    await once(socket, 'connect');
    left += 1;
    sockets.push(socket);
  }
  return { sockets, left: () => left };
}

test('headers and bodies that trickle are answered with 408, which says so', async () => {
  const key = ['x-api-key', TEST_KEY] as const;
  const type = ['content-type', 'application/json'] as const;
  const named = ['x-request-id', 'the-slow-one'] as const;
  const body = rawRequest('POST /v1/agents', [key, type, named, ['content-length', '1000000']]);
  const senders = await Promise.all([
    sendSlowly(url, 'GET /health/live HTTP/1.1\r\nhost: a\r\nx-long: '),
    sendSlowly(url, body),
  ]);
  const began = performance.now();
  const answers = await Promise.all(senders.map(({ ended }) => ended()));
  expect(performance.now() - began).toBeGreaterThan(LIMITS.http.requestMs - 5_000);
  for (const answer of answers) {
    expect(answer).toMatch(/^HTTP\/1.1 408 Request Timeout\r\n/);
    expect(answer).toContain('The request took too long to arrive.');
    expect(answer.match(/HTTP\/1.1/g)?.length).toBe(1);
  }
  expect(answers[1]).toContain('the-slow-one');
}, 120_000);

test('connections beyond the most there may be are closed at once; those that idle make room', async () => {
  const { sockets, left } = await open(MAX_CONNECTIONS);
  const answered = sockets.map((socket) => once(socket, 'data'));
  for (const socket of sockets) socket.write(rawRequest('GET /health/live'));
  await Promise.all(answered);
  // The first is refused, and has the half closed that has been idle longest.
  const [refused] = await exchange(url, rawRequest('GET /health/live'));
  expect(refused).toBeUndefined();
  const answer = await eventually(
    () => exchange(url, rawRequest('GET /health/live')),
    (replies) => replies.length > 0,
  );
  expect(answer[0]!.status).toBe(200);
  expect(left()).toBe(MAX_CONNECTIONS / 2);
  const lines = server.errors().match(/connections were refused/g);
  expect(lines?.length).toBe(1);
}, 120_000);
