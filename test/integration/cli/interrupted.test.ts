/** Operator commands that wait for read models which are not up to date. */
import { rm } from 'node:fs/promises';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openSqliteEventStore } from '../../../infra/sqlite/eventStore.ts';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import { startCli } from '../../support/processes/cliProcess.ts';
import { appendAgents } from '../../support/projections/projector.ts';
import { holdProjection } from '../../support/projections/heldProjection.ts';
import { temporaryFolder } from '../../support/sqlite/sqliteEventStore.ts';

let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  const store = await openSqliteEventStore({ folder });
  await appendAgents(store, 0, 3);
  await store.close();
  await (await openSqliteProjectionStore({ folder })).close();
  holdProjection(folder);
});
afterEach(() => rm(folder, { recursive: true }));

test.each(['SIGINT', 'SIGTERM'] as const)(
  '%s ends the wait, and the exit code says so',
  async (signal) => {
    const cli = startCli(folder, 'accounts', 'list');
    await cli.told((err) => err.includes('goes on from its checkpoint'));
    const began = performance.now();
    cli.kill(signal);
    expect(await cli.ended).toMatchObject({
      code: 130,
      out: '',
      err: expect.stringMatching(/Interrupted\.\n$/),
    });
    expect(performance.now() - began).toBeLessThan(2_000);
  },
);
