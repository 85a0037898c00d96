import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startScriptedModel, type ScriptedModel } from '../../support/fakes/scriptedModel.ts';
import { apiClient, TEST_KEY, writeModelsFile } from '../../support/http/service.ts';
import { debianProgram, withoutProgram } from '../../support/processes/debianProgram.ts';
import { eventually } from '../../support/processes/operator.ts';
import { openTerminal } from '../../support/processes/terminal.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const CTRL_C = '\x03';
const ANSWER_AFTER_MS = 4_000;

let folder: string;
let model: ScriptedModel;
let env: Record<string, string>;
let terminals: ReturnType<typeof openTerminal>[];

beforeEach(async () => {
  folder = await temporaryFolder();
  model = await startScriptedModel({ text: 'Hello.', delay_ms: ANSWER_AFTER_MS });
  env = {
    DATA_DIR: join(folder, 'data'),
    MODELS_FILE: await writeModelsFile(folder, model.baseUrl),
    BOOTSTRAP_API_KEY: TEST_KEY,
    LOG_LEVEL: 'warn',
    PORT: '0',
    // Colours would be part of what is printed.
    NO_COLOR: '1',
  };
  terminals = [];
});
afterEach(async () => {
  for (const terminal of terminals) terminal.kill();
  await Promise.all(terminals.map(({ exited }) => exited));
  await model.close();
  await rm(folder, { recursive: true });
});

function inTerminal(...command: string[]) {
  const terminal = openTerminal(command, env);
  terminals.push(terminal);
  return terminal;
}

/** A service in a terminal, with a run in flight that the model takes four seconds to answer. */
async function withRunInFlight(...command: string[]) {
  const terminal = inTerminal(...command);
  const [, url] = await terminal.prints(/listens on (http[^\s"]+)/);
  const client = apiClient(url!, TEST_KEY);
  const agent = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };
  const { agent_id } = (await client.post('/v1/agents', agent)).body.data;
  const running = client.post(`/v1/agents/${agent_id}/run`, { input: 'Hello?' });
  // Awaited after the signal.
  running.catch(() => undefined);
  await eventually(
    () => Promise.resolve(model.requests.length),
    (requests) => requests === 1,
  );
  return { terminal, running };
}

if (debianProgram('python3') === undefined) withoutProgram('Ctrl-C in a terminal', 'python3');
else {
  test.each([
    ['npm start', ['npm', 'start']],
    ['node services/main.ts', [process.execPath, 'services/main.ts']],
  ])(
    'Ctrl-C on `%s` stops the service in order: a run in flight is answered',
    async (_, command) => {
      const { terminal, running } = await withRunInFlight(...command);
      terminal.type(CTRL_C);
      expect((await running).body).toMatchObject({ success: true });
      expect(await terminal.exited).toBe(0);
    },
  );

  test('Ctrl-C once more, after a second, ends `npm start` at once', async () => {
    const { terminal, running } = await withRunInFlight('npm', 'start');
    const failed = expect(running).rejects.toThrow();
    terminal.type(CTRL_C);
    await sleep(1_500);
    terminal.type(CTRL_C);
    expect(await terminal.exited).not.toBe(0);
    await failed;
  });

  test('Ctrl-C on `npm run cli -- events tail` ends it as a command that is done', async () => {
    await withRunInFlight('npm', 'start');
    const tail = inTerminal('npm', 'run', 'cli', '--', 'events', 'tail');
    await tail.prints(/agent\.created/);
    tail.type(CTRL_C);
    expect(await tail.exited).toBe(0);
  });
}
