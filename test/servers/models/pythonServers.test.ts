import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { closeRebuilt } from '../../support/http/rebuiltRequests.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';
import { allEvents, openEvents, textIn } from '../../support/http/sse.ts';
import {
  describeWithPackage,
  runPython,
  startPythonServer,
  type PythonServer,
} from '../../support/servers/models/pythonServer.ts';

const START_LIMIT_MS = 120_000;
const TINY_MODEL = fileURLToPath(
  new URL('../../support/servers/models/tinyModel.py', import.meta.url),
);

let folder: string;
let service: TestService;
let server: PythonServer;

/** Offers the models of the server at OPENAI_BASE_URL. */
async function start(openServer: () => Promise<PythonServer>): Promise<void> {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-models-'));
  service = await startTestService();
  server = await openServer();
  await service.restart({ MODELS_FILE: '', OPENAI_API_KEY: '', OPENAI_BASE_URL: server.baseUrl });
}
async function stop(): Promise<void> {
  await closeRebuilt(service);
  await server.stop();
  await rm(folder, { recursive: true });
}

const run = async (agent: string) => {
  const { status, body } = await service.post(`/v1/agents/${agent}/run`, { input: 'Hello' });
  expect([status, body.error]).toEqual([200, undefined]);
  return body.data;
};
const streamRun = async (agent: string) => {
  const headers = { 'x-api-key': service.key, 'content-type': 'application/json' };
  const init = { method: 'POST', headers, body: JSON.stringify({ input: 'Hello' }) };
  return allEvents(await openEvents(`${service.url}/v1/agents/${agent}/run`, init));
};

describeWithPackage('llama_cpp', "'llama-cpp-python[server]' gguf", () => {
  beforeAll(
    () =>
      start(async () => {
        const model = join(folder, 'tiny.gguf');
        await runPython(TINY_MODEL, model);
        const options = ['--model', model, '--model_alias', 'tiny', '--n_ctx', '512'];
        return startPythonServer((port) =>
          ['-m', 'llama_cpp.server', '--port', String(port)].concat(options),
        );
      }),
    START_LIMIT_MS,
  );
  afterAll(stop);

  test('runs and streams, and keeps to the limit of tokens once it has ignored one', async () => {
    const limit = 8;
    const agent = await service.createAgent({ model: 'tiny', max_output_tokens: limit });
    const tokens = async (): Promise<number> => (await run(agent)).metadata.tokens.completion;
    expect(await tokens()).toBeGreaterThan(2 * limit);
    for (let runs = 0; runs < 3; runs += 1) expect(await tokens()).toBeLessThanOrEqual(limit + 1);
    const events = await streamRun(agent);
    expect(events.at(-1)!.event).toBe('turn.completed');
    expect(textIn(events)).toBe(events.at(-1)!.data.data.output);
  });
});

describeWithPackage('litellm', "'litellm[proxy]'", () => {
  beforeAll(
    () =>
      start(async () => {
        const upstream = { model: 'openai/m', api_base: service.model.baseUrl, api_key: 'none' };
        const config = { model_list: [{ model_name: 'proxied', litellm_params: upstream }] };
        const file = join(folder, 'config.yaml');
        // JSON is YAML.
        await writeFile(file, JSON.stringify(config));
        const main = 'import sys; from litellm import run_server; sys.exit(run_server())';
        return startPythonServer(
          (port) => ['-c', main, '--config', file, '--host', '127.0.0.1', '--port', String(port)],
          { LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY: 'true' },
        );
      }),
    START_LIMIT_MS,
  );
  afterAll(stop);

  test('runs, streams, calls tools, shows reasoning, and passes the limit on', async () => {
    const agent = await service.createAgent({
      model: 'proxied',
      tool: 'calculator',
      max_output_tokens: 40,
    });
    for (const call of [run, streamRun]) {
      const before = service.model.requests.length;
      service.model.use([
        {
          reasoning: 'I have to add.',
          tool_calls: [
            { name: 'calculator', arguments: '{"expression":"1+1"}' },
            { name: 'calculator', arguments: '{"expression":"2+2"}' },
          ],
        },
        { text: 'Two and four.' },
      ]);
      await call(agent);
      const [first, second] = service.model.requests.slice(before);
      expect(first).toMatchObject({ max_completion_tokens: 40 });
      const results = second!.messages.filter(({ role }) => role === 'tool');
      expect(results.map(({ content }) => content)).toEqual(['2', '4']);
      const [{ session_id }] = (await service.get('/v1/sessions?limit=1')).body.data;
      const path = `/v1/sessions/${session_id}?reasoning=true`;
      const [turn] = (await service.get(path)).body.data.turns;
      expect(turn).toMatchObject({ output: 'Two and four.', status: 'completed' });
      expect(turn.tool_calls[0].reasoning).toBe('I have to add.');
    }
  });
});
