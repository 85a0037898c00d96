/** An id of another account is answered like an unknown one, after the same work. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { typeIds } from '../../../infra/ids/typeIds.ts';
import { routes } from '../../../services/api/features.ts';
import { openTurnlog } from '../../../services/compose/service.ts';
import { startServing, type RunningService } from '../../../services/process/start.ts';
import { enabledServices } from '../../../services/process/serviceNames.ts';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { startScriptedModel, type ScriptedModel } from '../../support/fakes/scriptedModel.ts';
import { TEST_KEY, apiClient, writeModelsFile, type Client } from '../../support/http/service.ts';
import { clientWith, newKey } from '../../support/processes/operator.ts';
import { testStoreEnv } from '../../support/stores/testStore.ts';

/** The calls of store and read models since it was emptied. */
const calls: string[] = [];

function counted<Part extends object>(part: Part, name: string): Part {
  const members = Object.entries(part).map(([member, value]: [string, unknown]) => [
    member,
    typeof value !== 'function'
      ? value
      : (...args: unknown[]): unknown => {
          const size = args.find((arg) => typeof arg === 'object');
          calls.push(`${name}.${member} ${member === 'readStream' ? JSON.stringify(size) : ''}`);
          return (value as (...all: unknown[]) => unknown).apply(part, args);
        },
  ]);
  return { ...part, ...(Object.fromEntries(members) as Part) };
}

let folder: string;
let model: ScriptedModel;
let service: RunningService;
let owner: Client;
let stranger: Client;
/** By path parameter: an id of the owner, and one that nothing has. */
let ids: Record<string, { foreign: string; unknown: string }>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-test-'));
  model = await startScriptedModel({ text: 'Hello.' });
  const config = parseConfig({
    PORT: '0',
    DATA_DIR: join(folder, 'data'),
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'silent',
    WEBHOOKS_ALLOW_PRIVATE: 'true',
    ...testStoreEnv(),
  });
  const logger = createLogger('silent');
  const services = enabledServices(config);
  const turnlog = await openTurnlog(config, logger, services);
  const { store, readModels, cachedRows } = turnlog.api!;
  const api = {
    ...turnlog.api!,
    store: counted(store, 'store'),
    readModels: counted(readModels, 'readModels'),
    cachedRows: counted(cachedRows, 'cachedRows'),
  };
  service = await startServing(
    { ...turnlog, api },
    { config, logger, ids: typeIds, services, signal: new AbortController().signal },
  );
  owner = apiClient(service.url, TEST_KEY);
  stranger = await clientWith(service.url, await newKey(join(folder, 'data'), {}));

  const idOf = async (path: string, member: string, body: object): Promise<string> => {
    const answer = await owner.post(path, body);
    if (!answer.body.success) throw new Error(`${path}: ${JSON.stringify(answer.body)}`);
    return answer.body.data[member] as string;
  };
  const agent = { name: 'a', instruction: 'Be brief.', model: 'scripted' };
  const agentId = await idOf('/v1/agents', 'agent_id', agent);
  const sessionId = await idOf(`/v1/agents/${agentId}/run`, 'session_id', { input: 'hi' });
  const webhookId = await idOf('/v1/webhooks', 'webhook_id', { url: 'http://127.0.0.1:9/x' });
  const replayId = await idOf('/v1/replays', 'replay_id', {
    sessions: [sessionId],
    budget: { tokens: 1_000 },
    tools: 'recorded',
  });
  const keyId = await idOf('/v1/keys', 'key_id', { name: 'k', scopes: ['agents:read'] });
  ids = {
    agentId: { foreign: agentId, unknown: typeIds.typeId('agent') },
    sessionId: { foreign: sessionId, unknown: typeIds.typeId('session') },
    webhookId: { foreign: webhookId, unknown: typeIds.typeId('webhook') },
    keyId: { foreign: keyId, unknown: typeIds.typeId('key') },
    replayId: { foreign: replayId, unknown: typeIds.typeId('replay') },
  };
}, 60_000);
afterAll(async () => {
  await service.stop();
  await model.close();
  await rm(folder, { recursive: true });
});

const BODIES: Record<string, object> = {
  runAgent: { input: 'hi' },
  issueChatToken: { user: 'ada' },
  changeAgent: { name: 'b' },
  replaceAgent: { name: 'b', instruction: 'Be long.', model: 'scripted' },
  forkSession: { at_turn: 1 },
  describeSession: { title: 'mine now' },
  changeWebhook: { url: 'http://127.0.0.1:9/y' },
};
const QUERIES: Record<string, string> = { exportSession: '?format=events' };

const withId = routes.filter(({ path }) => /\{(agent|session|webhook|replay|key)Id\}/.test(path));
const named = withId.map((route): [string, (typeof withId)[number]] => [route.operationId, route]);

async function ask({ method, path, operationId }: (typeof withId)[number], which: string) {
  const url = path
    .replace(/\{(\w+Id)\}/, (_all, name: string) => ids[name]![which as 'foreign'])
    .replace('{turn}', '1');
  calls.length = 0;
  const answer =
    method === 'get'
      ? await stranger.get(url + (QUERIES[operationId] ?? ''))
      : await stranger.send(method.toUpperCase(), url, BODIES[operationId] ?? {});
  const { request_id: _id, ...body } = answer.body;
  const seen = calls.filter((call) => !/findApiKey|subscribe|lastEvent/.test(call));
  return { status: answer.status, body, calls: seen };
}

test.each(named)(
  '%s does the same for an id of another account as for an unknown one',
  async (_name, route) => {
    // The key of the stranger and what else is read once are known by then.
    await ask(route, 'unknown');
    const [foreign, unknown] = [await ask(route, 'foreign'), await ask(route, 'unknown')];
    expect(foreign).toEqual(unknown);
    expect(foreign.status).toBe(404);
  },
);

test('a session of another account is as unknown to a run of an own agent', async () => {
  const { body } = await stranger.post('/v1/agents', {
    name: 'mine',
    instruction: 'Be brief.',
    model: 'scripted',
  });
  const run = async (session_id: string) => {
    calls.length = 0;
    const answer = await stranger.post(`/v1/agents/${body.data.agent_id as string}/run`, {
      input: 'hi',
      session_id,
    });
    const { request_id: _id, ...shown } = answer.body;
    return { shown, calls: calls.filter((call) => !/findApiKey/.test(call)) };
  };
  const { foreign, unknown } = ids['sessionId']!;
  await run(unknown);
  const [first, second] = [await run(foreign), await run(unknown)];
  expect(first).toEqual(second);
  expect(first.shown).toMatchObject({ code: 'session_not_found' });
});
