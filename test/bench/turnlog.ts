import { readFileSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ROOT, startProcess, type BenchProcess } from './process.ts';
import type { Call } from './load.ts';

export const KEY = 'chosen-by-the-benchmark_7Qx2mVw9RkZp4LbN';
const headers = { 'x-api-key': KEY, 'content-type': 'application/json' };

export interface BenchService extends BenchProcess {
  url: string;
}

/**
 * A folder of its own with a models file: `bench` with a wide context, `narrow` with one of some
 * twenty short turns.
 */
export async function prepareFolder(modelUrl: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'turnlog-bench-'));
  const models = [
    { id: 'bench', provider: 'script', context_window: 1_000_000 },
    { id: 'narrow', provider: 'script', context_window: 1_000, max_output_tokens: 200 },
  ];
  await writeFile(
    join(folder, 'models.json'),
    JSON.stringify({ providers: { script: { base_url: modelUrl } }, models }),
  );
  return folder;
}

/** What `npm start` of a checkout gives Node: arguments, and variables such as those of glibc. */
function startOf(checkout: string): { args: string[]; env: Record<string, string> } {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8')) as {
    scripts: { start: string };
  };
  const [before, args] = scripts.start.split(' node ') as [string, string];
  const assignments = before.split(' ').filter((word) => word.includes('='));
  return {
    args: args.split(' '),
    env: Object.fromEntries(assignments.map((word) => word.split('=') as [string, string])),
  };
}

/**
 * The service as `npm start` starts it, on the folder, from this checkout or another one, with more
 * options.
 */
export async function startTurnlog(
  folder: string,
  checkout = ROOT,
  options: Record<string, string> = {},
): Promise<BenchService> {
  const start = startOf(checkout);
  const env = {
    ...start.env,
    PORT: '0',
    DATA_DIR: join(folder, 'data'),
    MODELS_FILE: join(folder, 'models.json'),
    BOOTSTRAP_API_KEY: KEY,
    LOG_LEVEL: 'warn',
    ...options,
  };
  const service = await startProcess(start.args, {
    env,
    until: /listens on/,
    checkout,
  });
  return { ...service, url: /http[^\s"]+/.exec(service.line)![0] };
}

export const createAgent = (model: string): Call => ({
  method: 'POST',
  path: '/v1/agents',
  headers,
  body: JSON.stringify({ name: 'Bench', instruction: 'Be brief.', model }),
});

export const runAgent = (agentId: string, sessionId?: string): Call => ({
  method: 'POST',
  path: `/v1/agents/${agentId}/run`,
  headers,
  body: JSON.stringify({
    input: 'What is the answer?',
    ...(sessionId === undefined ? {} : { session_id: sessionId }),
  }),
});

export const listAgents: Call = { method: 'GET', path: '/v1/agents', headers };

/** Sends one call and returns the envelope's data. */
export async function send(url: string, { path, ...init }: Call): Promise<any> {
  const response = await fetch(url + path, init);
  if (!response.ok) throw new Error(`status ${response.status}: ${await response.text()}`);
  return ((await response.json()) as { data: unknown }).data;
}
