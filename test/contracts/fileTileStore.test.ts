import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openOneFileTree } from '../../infra/files/tileReader.ts';
import { openFileTileTrees } from '../../infra/files/tileStore.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { tileStoreContract } from './tileStore.ts';

tileStoreContract('files', async () => {
  const folder = await temporaryFolder();
  const trees = join(folder, 'tlog');
  return {
    trees: async () => openFileTileTrees(trees),
    reader: () => openOneFileTree(trees),
    dispose: () => rm(folder, { recursive: true }),
  };
});
