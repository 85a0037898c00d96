import { expect, test } from '@jest/globals';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

test('a service that is killed leaves the compiled code of all its threads', async () => {
  const folder = await temporaryFolder();
  const cache = join(folder, 'cache');
  const env = { DATA_DIR: join(folder, 'data'), NODE_COMPILE_CACHE: cache };
  const filesAfter = async (signal: NodeJS.Signals): Promise<string[]> => {
    const server = startServerProcess(env);
    await server.ready;
    server.kill(signal);
    await server.exited;
    return (await readdir(cache, { recursive: true })).toSorted();
  };
  const killed = await filesAfter('SIGKILL');
  // At a regular end, Node.js adds what is missing.
  expect(await filesAfter('SIGTERM')).toEqual(killed);
});
