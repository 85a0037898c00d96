import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { LIMITS } from '../../../../shared/limits.ts';
import { apiClient, type Client } from '../../http/service.ts';
import { size } from '../../jest/size.ts';
import { clientWith, newKey } from '../operator.ts';
import { startServerProcess } from '../serverProcess.ts';
import { temporaryFolder } from '../../stores/sqlite/sqliteEventStore.ts';
import { PROVIDER_SECRET } from './answers.ts';
import { patiently } from './patiently.ts';
import { startModelServer, type ModelServer } from './processes/children.ts';

export const SLOW_MS = size({ small: 5_000, full: 60_000 });
const AGENTS = size({ small: 80, full: 560 });
const TURNS = size({ small: 16, full: 200 });

/** What JSON makes six bytes of; with some room for what else the API's bound counts. */
const LARGEST = '\u0001'.repeat(Math.floor(LIMITS.http.jsonTextBytes / 6) - 100);
/** Characters of an answer, each six bytes of JSON, the largest that is taken counts. */
const OUTPUTS = [165_000, 80_000, 40_000, 10_000];
const LONGEST_NAME = '\u{1f600}'.repeat(256);

/** What attackers know: a key of an account, and what the account has. */
export interface Prey {
  key: string;
  /** An agent for each model, with the calculator. */
  agents: Record<ModelName, string>;
  /** The largest transcript. */
  session: string;
}

/** Models are named after what their server does; `narrow` has room for little. */
const MODELS = {
  quick: { provider: 'kind', context_window: 1_000_000 },
  large: { provider: 'hostile', context_window: 400_000 },
  narrow: { provider: 'hostile', context_window: 8_000 },
  slow: { provider: 'hostile', context_window: 1_000_000 },
  dripping: { provider: 'hostile', context_window: 1_000_000 },
  echo: { provider: 'hostile', context_window: 1_000_000 },
  telling: { provider: 'hostile', context_window: 1_000_000 },
  faulty: { provider: 'hostile', context_window: 1_000_000 },
  calling: { provider: 'hostile', context_window: 1_000_000 },
  talking: { provider: 'hostile', context_window: 1_000_000 },
  hinting: { provider: 'hostile', context_window: 1_000_000 },
  colliding: { provider: 'hostile', context_window: 1_000_000 },
  fields: { provider: 'hostile', context_window: 1_000_000 },
  repeating: { provider: 'hostile', context_window: 1_000_000 },
  wide: { provider: 'hostile', context_window: 1_000_000 },
  named: { provider: 'hostile', context_window: 1_000_000 },
  lines: { provider: 'hostile', context_window: 1_000_000 },
  indexes: { provider: 'hostile', context_window: 1_000_000 },
  bytes: { provider: 'hostile', context_window: 1_000_000 },
};
export type ModelName = keyof typeof MODELS;

export interface World {
  /** The options of a service over the data folder. */
  env: Record<string, string>;
  folder: string;
  prey: Prey;
  /** Where the largest list and transcript ended up, for people. */
  sizes: string;
  close(): Promise<void>;
}

async function made({ post }: Client, path: string, given: object): Promise<any> {
  const { status, body } = await patiently(() => post(path, given));
  if (status !== 200) throw new Error(`the world could not be made: ${status} ${body.error}`);
  return body.data;
}

async function createAgents(client: Client): Promise<Record<ModelName, string>> {
  const agents: Partial<Record<ModelName, string>> = {};
  for (const model of Object.keys(MODELS) as ModelName[]) {
    const body = { name: model, instruction: 'Be brief.', model, tool: 'calculator' };
    agents[model] = (await made(client, '/v1/agents', body)).agent_id;
  }
  const largest = { name: LONGEST_NAME, instruction: LARGEST, model: 'quick' };
  for (let count = Object.keys(MODELS).length + 1; count <= AGENTS; count += 1)
    await made(client, '/v1/agents', largest);
  return agents as Record<ModelName, string>;
}

/** A session whose turns are as large as the service takes them. */
async function converse(client: Client, agent: string): Promise<string> {
  const path = `/v1/agents/${agent}/run`;
  for (const length of OUTPUTS) {
    const input = `${length} ${LARGEST}`;
    const first = await patiently(() => client.post(path, { input }));
    if (first.status !== 200) continue;
    const { session_id } = first.body.data;
    for (let turn = 1; turn < TURNS; turn += 1) await made(client, path, { input, session_id });
    return session_id;
  }
  throw new Error('the API takes no large turn');
}

async function writeModels(folder: string, kind: ModelServer, hostile: ModelServer) {
  const file = join(folder, 'models.json');
  const providers = {
    kind: { base_url: kind.baseUrl },
    hostile: { base_url: hostile.baseUrl, api_key_env: 'HOSTILE_PROVIDER_SECRET' },
  };
  const models = Object.entries(MODELS).map(([id, model]) => ({ id, ...model }));
  await writeFile(file, JSON.stringify({ providers, models }));
  return file;
}

/** Makes the world by a service without a limit on its memory, and stops that. */
export async function makeWorld(): Promise<World> {
  const folder = await temporaryFolder();
  const kind = await startModelServer({ slowMs: 0, nice: false });
  const hostile = await startModelServer({ slowMs: SLOW_MS, nice: true });
  const env = {
    DATA_DIR: join(folder, 'data'),
    MODELS_FILE: await writeModels(folder, kind, hostile),
    HOSTILE_PROVIDER_SECRET: PROVIDER_SECRET,
    LOG_LEVEL: 'info',
    // All attacks share an account. The one that reaches its quotas sets them.
    ACCOUNT_BYTES_PER_DAY: '0',
    ACCOUNT_EVENTS_PER_DAY: '0',
    ACCOUNT_AUDITS_PER_DAY: '0',
    // The slow model is slow, and not away.
    MODEL_ATTEMPT_TIMEOUT_MS: '90000',
    // A provider that attacks is to be met each time.
    MODEL_CIRCUIT_FAILURES: '1000000',
  };
  const server = startServerProcess(env);
  const url = await server.ready;
  const issued = await newKey(env.DATA_DIR);
  const client = await clientWith(url, issued);
  const agents = await createAgents(client);
  const session = await converse(client, agents.large);
  const sizes = await measure(url, issued.api_key, session);
  server.kill('SIGTERM');
  await server.exited;
  return {
    env,
    folder,
    prey: { key: issued.api_key, agents, session },
    sizes,
    async close() {
      await Promise.all([kind.close(), hostile.close()]);
      await rm(folder, { recursive: true });
    },
  };
}

/** Reads the largest list, which must be complete, and tells how large both are. */
async function measure(url: string, key: string, session: string): Promise<string> {
  const mib = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MiB`;
  const reply = await fetch(`${url}/v1/agents`, { headers: { 'x-api-key': key } });
  let [bytes, agents, end] = [0, 0, ''];
  // A whole list may be longer than a string can be.
  for await (const chunk of reply.body!) {
    bytes += chunk.length;
    const text = end + Buffer.from(chunk as Uint8Array).toString('latin1');
    agents += text.split('"config":').length - 1;
    end = text.slice(-8);
  }
  if (agents !== AGENTS || !end.endsWith('}'))
    throw new Error(`the list has ${agents} of ${AGENTS} agents, and ends with ${end}`);
  const { turns } = (await apiClient(url, key).get(`/v1/sessions/${session}?limit=1`)).body.data;
  const turn = Buffer.byteLength(JSON.stringify(turns[0]));
  return `a list of ${AGENTS} agents, ${mib(bytes)}; a session of ${TURNS} turns, ${mib(turn * TURNS)}`;
}
