/** A backup and a restore that are killed, and repeated. */
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { makeProofLog } from '../support/builders/proofLog.ts';
import { runCliWith, startCliProcess } from '../support/processes/cliProcess.ts';
import { startServerProcess } from '../support/processes/serverProcess.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const SESSIONS = 1_200;
const TURNS = 8;
const EVENTS = SESSIONS * (2 * TURNS + 1);

let elsewhere: string;
let source: string;
beforeAll(async () => {
  elsewhere = await temporaryFolder();
  ({ folder: source } = await makeProofLog({ sessions: SESSIONS, turns: TURNS }));
}, 120_000);
afterAll(async () => {
  for (const folder of [elsewhere, source]) await rm(folder, { recursive: true });
});

/** Runs a command as a process, and kills it once it has written that. */
async function killedAt(data: string, text: string, ...args: string[]): Promise<void> {
  const command = startCliProcess({ DATA_DIR: data }, ...args);
  await command.told((err) => err.includes(text));
  command.kill('SIGKILL');
  expect((await command.ended).code).toBeNull();
}

const cli = async (data: string, ...args: string[]) => {
  const { code, out, err } = await runCliWith({ DATA_DIR: data }, '--json', ...args);
  return { code, ...(JSON.parse(out || err) as Record<string, any>) };
};

test('a backup that is killed at any moment goes on, and a restore begins anew', async () => {
  let target = '';
  for (const moment of ['events and', 'leaves copied', 'events verified']) {
    // A backup that is continued skips the moments of what it has: each one begins anew.
    target = join(elsewhere, `backup, ${moment}`);
    await killedAt(source, moment, 'backup', target);
    expect(await cli(join(elsewhere, 'none'), 'restore', target)).toMatchObject({
      code: 1,
      error: { message: expect.stringContaining('is not complete') },
    });
    expect(await cli(source, 'backup', target)).toMatchObject({
      code: 0,
      misfit: null,
      leaves: EVENTS,
      log: { events: EVENTS },
    });
  }

  const data = join(elsewhere, 'data');
  for (const moment of ['Files restored', 'events verified']) {
    await killedAt(data, moment, 'restore', target);
    expect(await cli(data, 'audit', 'verify')).toMatchObject({ code: 1 });
    const server = startServerProcess({ DATA_DIR: data });
    expect(await server.exited).not.toBe(0);
    expect(server.errors()).toContain('Repeat the same restore command');
  }
  expect(await cli(data, 'restore', target)).toMatchObject({ code: 0, misfit: null });
  expect(await cli(data, 'audit', 'verify', '--texts')).toMatchObject({ code: 0, events: EVENTS });
  for (const name of ['master.key', 'log-signing-key.pem'])
    expect(await readFile(join(data, name))).toEqual(await readFile(join(source, name)));
}, 240_000);
