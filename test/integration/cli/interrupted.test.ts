/** Operator commands that wait for read models which are not up to date. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startCliProcess } from '../../support/processes/cliProcess.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => rm(folder, { recursive: true }));

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s ends the wait, and the exit code says so',
  async (signal) => {
    const EVENTSTOREDB_URL = `esdb://127.0.0.1:${await freePort()}?tls=false`;
    const cli = startCliProcess({ DATA_DIR: folder, EVENTSTOREDB_URL }, 'accounts', 'list');
    await cli.told((err) => err.includes('refuses connections'));
    const began = performance.now();
    cli.kill(signal);
    expect(await cli.ended).toMatchObject({
      code: 130,
      out: '',
      err: expect.stringMatching(/Interrupted\.\n$/),
    });
    expect(performance.now() - began).toBeLessThan(8_000);
  },
);
