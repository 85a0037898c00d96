import { expect, test } from '@jest/globals';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../support/processes/freePort.ts';
import { eventually } from '../../support/processes/operator.ts';
import { plainEnvironment } from '../../support/processes/plainEnvironment.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const preloaded = (name: string): string =>
  fileURLToPath(new URL(`../../support/processes/${name}`, import.meta.url));
const MAIN = fileURLToPath(new URL('../../../services/main.ts', import.meta.url));
const PRELOADED = preloaded('rejectOnSignal.mjs');
const STAYS_OPEN = preloaded('staysOpen.mjs');

test('an error that nobody handled is logged with its cause, and the service ends in order with exit code 70', async () => {
  const folder = await temporaryFolder();
  const server = startServerProcess({
    DATA_DIR: folder,
    BOOTSTRAP_API_KEY: TEST_KEY,
    NODE_OPTIONS: `--import=${PRELOADED}`,
  });
  const client = apiClient(await server.ready, TEST_KEY);
  expect(
    (await client.post('/v1/agents', { name: 'A', instruction: 'x', model: 'offline-echo' }))
      .status,
  ).toBe(200);
  server.kill('SIGUSR2');
  expect(await server.exited).toBe(70);
  const fatal = server
    .errors()
    .split('\n')
    .filter((line) => line.includes('"fatal"'));
  expect(fatal).toEqual([expect.stringMatching(/nobody awaits this.*its cause/)]);
  // The log of a service that was cut off would not say so.
  expect(server.errors()).toContain('"msg":"shut down"');
  await rm(folder, { recursive: true });
});

test.each([
  ['/dev/full', 'SIGTERM', 0],
  ['a closed pipe', 'SIGTERM', 0],
  ['/dev/full', 'SIGUSR2', 70],
] as const)(
  'a service whose output goes to %s serves, and ends in order after %s',
  async (where, signal, code) => {
    const folder = await temporaryFolder();
    const port = await freePort();
    const output = where === '/dev/full' ? openSync(where, 'w') : 'pipe';
    const child = spawn(process.execPath, ['--import', PRELOADED, MAIN], {
      env: { ...plainEnvironment(), DATA_DIR: folder, PORT: String(port), LOG_LEVEL: 'debug' },
      stdio: ['ignore', output, output],
    });
    child.stdout?.destroy();
    child.stderr?.destroy();
    const ended = once(child, 'exit');
    const ready = (): Promise<boolean> =>
      fetch(`http://127.0.0.1:${port}/health/ready`).then(
        ({ ok }) => ok,
        () => false,
      );
    // Each request is logged.
    for (let requests = 0; requests < 3; requests += 1)
      await Promise.race([eventually(ready, (isReady) => isReady), ended]);
    expect(child.exitCode).toBeNull();
    child.kill(signal);
    expect(await ended).toEqual([code, null]);
    await rm(folder, { recursive: true });
  },
);

test('a service that a signal stops ends in time, though something keeps it open', async () => {
  const folder = await temporaryFolder();
  const server = startServerProcess({
    DATA_DIR: folder,
    SHUTDOWN_GRACE_MS: '0',
    NODE_OPTIONS: `--import=${STAYS_OPEN}`,
  });
  await server.ready;
  server.kill('SIGTERM');
  expect(await server.exited).toBe(70);
  expect(server.errors()).toMatch(/"msg":"shut down"[^]*did not stop in time/);
  await rm(folder, { recursive: true });
});
