/** A process whose clients hold more connections than it may have open files. */
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { startServerProcess, withOpenFiles } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => rm(folder, { recursive: true }));

const start = (openFiles: number) =>
  startServerProcess({ DATA_DIR: join(folder, 'data') }, [], undefined, withOpenFiles(openFiles));

test('serves its clients, has files for its own work, and accepts connections again', async () => {
  const server = start(128);
  const url = await server.ready;
  expect(server.errors()).toContain('MAX_CONNECTIONS is lowered');
  const { hostname, port } = new URL(url);
  const sockets: Socket[] = Array.from({ length: 300 }, () =>
    connect(Number(port), hostname).on('error', () => undefined),
  );
  await Promise.all(sockets.map((socket) => once(socket, 'connect').catch(() => undefined)));
  const health = async (): Promise<number> =>
    fetch(`${url}/health/live`, { headers: { connection: 'close' } }).then(
      ({ status }) => status,
      () => 0,
    );

  // The process opens files all the time.
  await sleep(3_000);
  for (const socket of sockets) socket.destroy();
  while ((await health()) !== 200);
  expect(server.errors()).not.toContain('EMFILE');
  server.kill('SIGTERM');
  expect(await server.exited).toBe(0);
});

test('does not start without files for its own work', async () => {
  const server = start(64);
  expect(await server.exited).toBe(1);
  expect(server.errors()).toMatch(/open files is 64.*ulimit -n/);
});
