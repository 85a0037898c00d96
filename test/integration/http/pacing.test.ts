import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { rawRequest } from '../../support/http/rawHttp.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { clientWith, newKey } from '../../support/processes/operator.ts';

const FLOOD = 200;
const ORIGIN = 'https://app.example.com';

let service: TestService;
let limitedKey: string;
let otherKey: string;
beforeAll(async () => {
  service = await startTestService({ text: 'Hello.' }, { CORS_ORIGINS: ORIGIN, CONSOLE: 'on' });
  const issued = await newKey(service.folder);
  await clientWith(service.url, issued);
  otherKey = issued.api_key;
  const limited = await service.post('/v1/keys', { name: 'limited', scopes: ['sessions:read'] });
  limitedKey = limited.body.data.api_key as string;
});
afterAll(() => service.close());

const withKey = (line: string, key: string): string => rawRequest(line, [['x-api-key', key]]);
const small = (): string => withKey('GET /v1/models', otherKey);
const probe = (): string => rawRequest('GET /health/live');

/** A connection that the service has accepted, since it has answered a request over it. */
async function connected(): Promise<Socket> {
  const { hostname, port } = new URL(service.url);
  const socket = connect(Number(port), hostname);
  socket.write(small());
  await once(socket, 'data');
  return socket;
}

interface Answers {
  /** The statuses of the flood. */
  statuses: Set<string>;
  /** How many requests of the flood were answered before the last request. */
  before: number;
}

/** Sends a request on each of many connections, and then another one. */
async function floodThen(flood: string, last: string): Promise<Answers> {
  const sockets = await Promise.all(Array.from({ length: FLOOD + 1 }, connected));
  const order: number[] = [];
  const statuses = new Set<string>();
  const answers = sockets.map(async (socket, index) => {
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    order.push(index);
    const status = bytes.toString('latin1', 9, 12);
    if (index < FLOOD) statuses.add(status);
    else expect(status).toBe('200');
  });
  sockets.forEach((socket, index) => socket.write(index < FLOOD ? flood : last));
  await Promise.all(answers);
  for (const socket of sockets) socket.destroy();
  return { statuses, before: order.indexOf(FLOOD) };
}

const preflight = (): string =>
  rawRequest('OPTIONS /v1/agents', [
    ['origin', ORIGIN],
    ['access-control-request-method', 'POST'],
  ]);

/** A request with a body that is too large and does not arrive. */
const announcing = (type: string): string =>
  rawRequest('POST /v1/agents', [
    ['x-api-key', service.key],
    ['content-type', type],
    ['content-length', '999999999'],
  ]);

const FLOODS: readonly [what: string, statuses: string[], request: () => string][] = [
  ['no path', ['404'], () => rawRequest('GET /nothing/here')],
  ['no path, with a key', ['404'], () => withKey('GET /nothing/here', service.key)],
  ['another method', ['405'], () => rawRequest('PUT /health/live')],
  ['OPTIONS', ['405'], () => rawRequest('OPTIONS /v1/agents')],
  ['a preflight', ['204'], preflight],
  ['no key', ['401'], () => rawRequest('GET /v1/models')],
  ['no Host', ['400'], () => 'GET /v1/models HTTP/1.1\r\n\r\n'],
  ['a wrong query', ['400'], () => withKey('GET /v1/models?x=1', service.key)],
  ['a large body', ['413'], () => announcing('application/json')],
  ['no JSON', ['415'], () => announcing('text/plain')],
  ['too little scope', ['403'], () => withKey('GET /v1/keys', limitedKey)],
  ['/health/live', ['200'], probe],
  ['the console', ['405'], () => rawRequest('PUT /console')],
  // All but the first are delayed, or refused at once.
  ['a wrong key', ['401', '429'], () => withKey('GET /v1/models', 'wrong')],
];

test.each(FLOODS)(
  'many requests (%s) do not delay one of an account that came later',
  async (_what, statuses, request) => {
    const answers = await floodThen(request(), small());
    expect([...answers.statuses].toSorted()).toEqual(statuses);
    expect(answers.before).toBeLessThan(FLOOD / 2);
  },
);

test.each([
  ['without a key', () => rawRequest('GET /nothing/here')],
  ['of an account', () => withKey('GET /v1/models?x=1', service.key)],
])('many refused requests %s do not delay a probe that came later', async (_what, request) => {
  expect((await floodThen(request(), probe())).before).toBeLessThan(FLOOD / 2);
});
