import { expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const preloaded = (name: string): string =>
  fileURLToPath(new URL(`../../support/processes/${name}`, import.meta.url));
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
