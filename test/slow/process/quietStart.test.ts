/** What a start that takes its time writes to the log, while probes and clients come already. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../../support/processes/operator.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => rm(folder, { recursive: true }));

test('says what it waits for and does not repeat it, warns of misspelt options, and prints no stack', async () => {
  const server = startServerProcess({
    DATA_DIR: join(folder, 'data'),
    EVENTSTOREDB_URL: `esdb://127.0.0.1:${await freePort()}?tls=false`,
    MODEL_FILE: 'models.json',
    DATABASE_URI: '',
  });
  const address = (): string | undefined => /"url":"(http[^"]+)"/.exec(server.errors())?.[1];
  const url = await eventually(
    async () => address(),
    (found) => found !== undefined,
  );
  await eventually(
    async () => server.errors(),
    (told) => told.includes('refuses connections'),
  );
  for (const path of ['/health/ready', '/v1/agents', '/v1/models', '/health/ready'])
    expect((await fetch(`${url}${path}`)).status).toBe(503);
  server.kill('SIGTERM');
  expect(await server.exited).toBe(0);

  const lines = server
    .errors()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { level: string; msg: string });
  expect(server.errors()).not.toContain('\\n    at ');
  const warnings = lines.filter(({ level }) => level !== 'info').map(({ msg }) => msg);
  expect(warnings).toContain(
    'MODEL_FILE is not an option, and is ignored; did you mean MODELS_FILE?',
  );
  // The projector's thread has a connection of its own, and says what befalls that.
  for (const warning of new Set(warnings))
    expect(warnings.filter((other) => other === warning).length).toBeLessThanOrEqual(2);
  expect(warnings).not.toContain('requests failed; this is the latest');
});
