import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { clientWith, newKey } from '../../support/processes/operator.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

const FLOOD = 200;
const AGENT = JSON.stringify({ name: 'x', instruction: 'x', model: 'scripted' });

let answered = Promise.withResolvers<void>();
let service: TestService;
let otherKey: string;
beforeAll(async () => {
  service = await startTestService(async () => {
    await answered.promise;
    return { text: 'Hello.' };
  });
  const issued = await newKey(service.folder);
  await clientWith(service.url, issued);
  otherKey = issued.api_key;
});
afterAll(() => service.close());

const requestOf = (method: string, path: string, key: string, body = ''): string =>
  [
    `${method} ${path} HTTP/1.1`,
    'host: x',
    'prefer: wait=30',
    `x-api-key: ${key}`,
    'content-type: application/json',
    `content-length: ${body.length}`,
    '',
    body,
  ].join('\r\n');

/** A connection that the service has accepted, since it has answered a request over it. */
async function connected(): Promise<Socket> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  socket.write(requestOf('GET', '/v1/models', service.key));
  await once(socket, 'data');
  return socket;
}

test.each([
  ['GET', '/v1/models', ''],
  ['POST', '/v1/agents', AGENT],
])(
  'a %s is answered before most of the requests that another account has sent earlier',
  async (method, path, body) => {
    const sockets = await Promise.all(Array.from({ length: FLOOD + 1 }, connected));
    const order: number[] = [];
    const answers = sockets.map(async (socket, index) => {
      const [bytes] = (await once(socket, 'data')) as [Buffer];
      order.push(index);
      expect(bytes.toString('latin1')).toMatch(/^HTTP\/1.1 200/);
    });
    sockets.forEach((socket, index) =>
      socket.write(requestOf(method, path, index < FLOOD ? service.key : otherKey, body)),
    );
    await Promise.all(answers);
    for (const socket of sockets) socket.destroy();
    expect(order.indexOf(FLOOD)).toBeLessThan(FLOOD / 2);
  },
);

/** Answers or ends of streams that arrive within one turn of the event loop, at most. */
async function mostAtOnce(sockets: readonly Socket[], end: RegExp): Promise<number> {
  const arrivals = { left: sockets.length, now: 0 };
  let most = 0;
  for (const socket of sockets)
    socket.on('data', (bytes: Buffer) => {
      if (!end.test(bytes.toString('latin1'))) return;
      arrivals.left -= 1;
      arrivals.now += 1;
    });
  answered.resolve();
  while (arrivals.left > 0) {
    arrivals.now = 0;
    await nextTurn();
    most = Math.max(most, arrivals.now);
  }
  return most;
}

test.each([
  ['follow it', '/stream', /event: turn\.completed/, 60],
  ['wait for it', '', /"status":"completed"/, 60],
])(
  'the clients of a turn that %s do not all get its end at once',
  async (_what, suffix, end, limit) => {
    answered = Promise.withResolvers();
    const agent = await service.createAgent();
    const started = await service.post(
      `/v1/agents/${agent}/run`,
      { input: 'hi' },
      { prefer: 'respond-async' },
    );
    const { session_id, turn } = started.body.data as { session_id: string; turn: number };
    const sockets = await Promise.all(Array.from({ length: FLOOD }, connected));
    const path = `/v1/sessions/${session_id}/turns/${turn}${suffix}`;
    for (const socket of sockets) socket.write(requestOf('GET', path, service.key));
    await sleep(1_000);
    const most = await mostAtOnce(sockets, end);
    for (const socket of sockets) socket.destroy();
    expect(most).toBeLessThanOrEqual(limit);
  },
);
