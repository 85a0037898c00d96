/** Operator commands on a cluster, without the keys of its texts. */
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { runCliWith } from '../../support/processes/cliProcess.ts';
import { startEventStoreDbNode } from '../../support/servers/eventstoredb-node/index.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let node: Awaited<ReturnType<typeof startEventStoreDbNode>>;
beforeEach(async () => {
  folder = await temporaryFolder();
  node = await startEventStoreDbNode({ folder: join(folder, 'node') });
});
afterEach(async () => {
  await node.close();
  await rm(folder, { recursive: true });
});

test('a command creates keys for an empty log in a cluster only', async () => {
  const cli = (keys: string, ...args: string[]) =>
    runCliWith(
      {
        DATA_DIR: join(folder, 'data'),
        KEYS_DIR: join(folder, keys),
        EVENTSTOREDB_URL: node.connectionString,
      },
      ...args,
    );
  expect((await cli('keys', 'accounts', 'open', 'first')).code).toBe(0);
  for (const args of [
    ['accounts', 'list'],
    ['accounts', 'open', 'second'],
    ['projections', 'rebuild'],
    ['text-keys', 'status'],
    ['text-keys', 'rotate'],
  ]) {
    const { code, err } = await cli('mistyped', ...args);
    expect({ code, err }).toMatchObject({
      code: 1,
      err: expect.stringContaining('The keys of texts are not here'),
    });
  }
  expect(await readdir(folder)).not.toContain('mistyped');
  expect((await cli('keys', 'accounts', 'list')).out).toMatch(/ first\n$/);
});
