import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { clientWith, newKey } from '../../support/processes/operator.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

const FLOOD = 200;
const AGENT = JSON.stringify({ name: 'x', instruction: 'x', model: 'scripted' });

let service: TestService;
let otherKey: string;
beforeAll(async () => {
  service = await startTestService();
  const issued = await newKey(service.folder);
  await clientWith(service.url, issued);
  otherKey = issued.api_key;
});
afterAll(() => service.close());

const requestOf = (method: string, path: string, key: string, body = ''): string =>
  [
    `${method} ${path} HTTP/1.1`,
    'host: x',
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
