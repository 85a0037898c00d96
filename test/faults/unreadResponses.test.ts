/** Clients that read too little of large responses, and the account beside them. */
import { connect, type Socket } from 'node:net';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { LIMITS } from '../../shared/limits.ts';
import { startScriptedModel, type ScriptedModel } from '../support/fakes/scriptedModel.ts';
import { scrape, valueOf } from '../support/http/metrics.ts';
import { rawRequest } from '../support/http/rawHttp.ts';
import { writeModelsFile, type Client } from '../support/http/service.ts';
import { clientWith, newKey, type IssuedKey } from '../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../support/processes/serverProcess.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const CLIENTS = 45;
/** The connection itself takes the first responses of about 1 MB; the service holds the next one. */
const PIPELINED = LIMITS.http.pipelined - 1;
const READ_EVERY_MS = 100;
/** What JSON makes six bytes of. */
const LARGE = '\u0001'.repeat(163_000);

let folder: string;
let server: ServerProcess;
let model: ScriptedModel;
let url: string;
let key: IssuedKey;
let neighbourKey: IssuedKey;
let attacker: Client;
let neighbour: Client;
let largeAgent: string;
let sockets: Socket[] = [];
let reading: NodeJS.Timeout | undefined;

beforeAll(async () => {
  folder = await temporaryFolder();
  model = await startScriptedModel({ text: LARGE });
  server = startServerProcess({
    DATA_DIR: folder,
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    NODE_OPTIONS: '--max-old-space-size=256 --max-semi-space-size=8',
  });
  url = await server.ready;
  key = await newKey(folder);
  attacker = await clientWith(url, key);
  neighbourKey = await newKey(folder);
  neighbour = await clientWith(url, neighbourKey);
  largeAgent = await createAgent(attacker, LARGE);
}, 60_000);
function stopReading(): void {
  clearInterval(reading);
  for (const socket of sockets) socket.destroy();
}
afterEach(stopReading);
afterAll(async () => {
  server.kill('SIGKILL');
  await server.exited;
  await model.close();
  await rm(folder, { recursive: true });
});

const createAgent = async ({ post }: Client, instruction: string): Promise<string> =>
  (await post('/v1/agents', { name: 'A', instruction, model: 'scripted' })).body.data.agent_id;

const post = (
  line: string,
  headers: readonly (readonly [string, string])[],
  body: object,
): string =>
  rawRequest(
    line,
    [['x-api-key', key.api_key], ['content-type', 'application/json'], ...headers],
    JSON.stringify(body),
  );

/** Connections that send requests, and read some bytes of the responses now and then. */
function readSlowly(requests: readonly string[], bytes: number): void {
  const { hostname, port } = new URL(url);
  sockets = requests.map((request) => {
    const socket = connect(Number(port), hostname).pause();
    socket.on('error', () => undefined);
    socket.write(request);
    return socket;
  });
  reading = setInterval(() => {
    for (const socket of sockets) socket.read(bytes);
  }, READ_EVERY_MS);
}

const memory = async (name: string): Promise<number> => {
  const { text } = await scrape({ url, key: neighbourKey.api_key });
  return valueOf(text, `turnlog_resource_${name}{resource="memory_answers"}`);
};

test('clients that hardly read responses to changes and runs take no memory from another account, and are cut', async () => {
  const agent = await createAgent(neighbour, 'Be brief.');
  const path = `/v1/agents/${await createAgent(attacker, 'Be long.')}/run`;
  const once = { 'idempotency-key': 'once' };
  expect((await attacker.post(path, { input: 'Go.' }, once)).status).toBe(200);
  const change = post(`PATCH /v1/agents/${largeAgent}`, [], {});
  const again = post(`POST ${path}`, Object.entries(once), { input: 'Go.' });
  const requests = [change, again].map((request) => request.repeat(PIPELINED));
  readSlowly(
    Array.from({ length: CLIENTS }, (_, at) => requests[at % 2]!),
    512,
  );
  const own = attacker.send('PATCH', `/v1/agents/${largeAgent}`, { name: 'B' });
  const times: number[] = [];
  const waiting: number[] = [];
  for (const until = performance.now() + 8_000; performance.now() < until; await sleep(250)) {
    const asked = performance.now();
    expect((await neighbour.get(`/v1/agents/${agent}`)).status).toBe(200);
    times.push(performance.now() - asked);
    waiting.push(await memory('waiting'));
    expect(await memory('used_bytes')).toBeLessThanOrEqual((await memory('limit_bytes')) / 2);
  }
  expect(Math.max(...times)).toBeLessThan(2_500);
  expect(Math.max(...waiting)).toBeGreaterThan(0);
  expect((await own).body.data.name).toBe('B');
}, 60_000);
