import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { openOperator } from '../../../services/compose/operator/operator.ts';
import { startService } from '../../../services/compose/service.ts';
import { enabledServices } from '../../../services/process/serviceNames.ts';
import type { RunningService } from '../../../services/process/start.ts';
import { issueKey, openAccount } from '../../../shared/accounts/commands.ts';
import { parseConfig, type Config } from '../../../shared/lib/config/config.ts';
import { SCOPES } from '../../../shared/accounts/events.ts';
import { createLogger } from '../../../shared/lib/logger.ts';
import { PATIENT } from '../processes/serverProcess.ts';
import { startScriptedModel, type Script, type ScriptedModel } from '../fakes/scriptedModel.ts';
import { onEventStoreDb, testStoreEnv } from '../stores/testStore.ts';

export interface Reply {
  status: number;
  headers: Headers;
  /** The parsed envelope. */
  body: {
    success: boolean;
    data: any;
    error?: string;
    code?: string;
    details?: Record<string, { message: string; path: string }>;
    status: number;
    retry?: string;
    session_id?: string;
    turn?: number;
    request_id?: string;
  };
}

export interface Client {
  get(path: string, headers?: Record<string, string>): Promise<Reply>;
  /** A body that is not text is sent as JSON. */
  send(
    method: string,
    path: string,
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<Reply>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply>;
}

/** An HTTP client of the API that expects every answer to be JSON in UTF-8. */
export function apiClient(url: string, key: string | undefined): Client {
  const call = async (path: string, init: RequestInit): Promise<Reply> => {
    const response = await fetch(url + path, init);
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Reply['body'],
    };
  };
  const credentials: Record<string, string> = key === undefined ? {} : { 'x-api-key': key };
  const send: Client['send'] = (method, path, body, headers = {}) =>
    call(path, {
      method,
      headers: { 'content-type': 'application/json', ...credentials, ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
  return {
    get: (path, headers = {}) => call(path, { headers: { ...credentials, ...headers } }),
    send,
    post: (...request) => send('POST', ...request),
  };
}

export interface TestService extends Client {
  url: string;
  key: string;
  folder: string;
  model: ScriptedModel;
  /** Creates an agent on the scripted model and returns its id. */
  createAgent(changes?: Record<string, unknown>): Promise<string>;
  /** The running service itself; changes with `restart`. */
  service(): RunningService;
  /** Stops it and starts another on the same folder, with other options if any are given. */
  restart(env?: Record<string, string>): Promise<void>;
  close(): Promise<void>;
}

export const TEST_KEY = 'chosen-by-the-tests_7Qx2mVw9RkZp4LbN';

/**
 * Models on one scripted server: `scripted`, and `narrow`, whose context holds only a few short
 * turns.
 */
export async function writeModelsFile(folder: string, baseUrl: string): Promise<string> {
  const file = join(folder, 'models.json');
  const models = [
    {
      id: 'scripted',
      provider: 'script',
      upstream_model: 'scripted-upstream',
      context_window: 1_000_000,
    },
    { id: 'narrow', provider: 'script', context_window: 200, max_output_tokens: 50 },
  ];
  await writeFile(file, JSON.stringify({ providers: { script: { base_url: baseUrl } }, models }));
  return file;
}

/** A key of an account of its own, on a store that was used before. */
async function issueTestKey(config: Config): Promise<string> {
  const operator = await openOperator(config, createLogger('silent'));
  const actor = { account_id: operator.ids.typeId('acct'), key_id: 'operator', request_id: 'test' };
  await openAccount(operator, actor, 'test');
  const { api_key } = await issueKey(operator, actor, {
    name: 'test',
    scopes: SCOPES,
    expiresAt: null,
  });
  // The service has it as soon as a projection that began after it is caught up.
  await operator.readModels();
  await operator.close();
  return api_key;
}

/**
 * The whole service in this process, over a folder of its own and a scripted model server. In
 * tests with a browser, or with CONSOLE=on, it serves the console of the project or of another folder.
 */
export async function startTestService(
  script: Script = { text: 'Hello.' },
  env: Record<string, string> = {},
  consoleSources?: string,
): Promise<TestService> {
  const folder = await mkdtemp(join(tmpdir(), 'turnlog-test-'));
  const dataFolder = env['DATA_DIR'] ?? join(folder, 'data');
  const model = await startScriptedModel(script);
  const modelsFile = await writeModelsFile(folder, model.baseUrl);
  const configOf = (more: Record<string, string>) =>
    parseConfig({
      PORT: '0',
      DATA_DIR: dataFolder,
      MODELS_FILE: modelsFile,
      BOOTSTRAP_API_KEY: TEST_KEY,
      LOG_LEVEL: 'silent',
      CONSOLE: process.env['TURNLOG_TEST_CONSOLE'] ?? 'off',
      // Runs whose model never answers would hold up every stop for ten seconds.
      SHUTDOWN_GRACE_MS: '500',
      ...PATIENT,
      ...testStoreEnv(),
      // Services that share a log sign one tree in their database, and else one each in their data folders.
      ...(onEventStoreDb() &&
        !('DATABASE_URL' in testStoreEnv()) && { LOG_ORIGIN: basename(folder) }),
      ...more,
    });
  const start = (more: Record<string, string>): Promise<RunningService> => {
    const config = configOf(more);
    return startService(config, createLogger(config.LOG_LEVEL), {
      services: enabledServices(config),
      signal: new AbortController().signal,
      ...(consoleSources !== undefined && { consoleSources }),
    });
  };
  let service = await start(env);
  const key = service.firstKey ?? (await issueTestKey(configOf(env)));
  let client = apiClient(service.url, key);

  return {
    get url() {
      return service.url;
    },
    key,
    folder: dataFolder,
    model,
    get: (...request) => client.get(...request),
    send: (...request) => client.send(...request),
    post: (...request) => client.post(...request),
    async createAgent(changes = {}) {
      const { body } = await client.post('/v1/agents', {
        name: 'Test',
        instruction: 'Be brief.',
        model: 'scripted',
        ...changes,
      });
      if (!body.success) throw new Error(`no agent was created: ${JSON.stringify(body)}`);
      return body.data.agent_id as string;
    },
    service: () => service,
    async restart(more = {}) {
      await service.stop();
      service = await start({ ...env, ...more });
      client = apiClient(service.url, key);
    },
    async close() {
      await service.stop();
      await model.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
