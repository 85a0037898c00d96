import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openSqliteProjectionStore } from '../../../../infra/sqlite/readModels/projectionStore.ts';
import { openSqliteReadModels } from '../../../../infra/sqlite/readModels/readModels.ts';
import { createProgressChannel } from '../../../../shared/projections/progress.ts';
import type { ReadModelsFixture } from '../../../contracts/readModels.ts';

async function openIn(folder: string): Promise<ReadModelsFixture> {
  const progress = createProgressChannel();
  const store = await openSqliteProjectionStore({ folder });
  const readModels = openSqliteReadModels({ folder, progress });
  const closeBoth = async (): Promise<void> => {
    await readModels.close();
    await store.close();
  };
  return {
    store,
    readModels,
    announce: (position, caughtUp) =>
      progress.publish({
        position,
        caughtUp,
        keepsKnownRows: false,
        percent: caughtUp ? 100 : 40,
        generation: store.generation,
      }),
    async reopen() {
      await closeBoth();
      return openIn(folder);
    },
    async close() {
      await closeBoth();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Both halves of the SQLite read models over a folder of their own. */
export const sqliteReadModelsFixture = async (): Promise<ReadModelsFixture> =>
  openIn(await mkdtemp(join(tmpdir(), 'turnlog-read-models-')));
