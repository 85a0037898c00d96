import { renameSync } from 'node:fs';
import { storeUnavailableError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { RebuildStore } from '../../../shared/ports/readModels.ts';
import { isSqliteBusy } from '../eventStore/errors.ts';
import { readModelsNotOpened } from './failures.ts';
import {
  buildingFile,
  buildingGeneration,
  currentGeneration,
  generationFile,
  removeDatabase,
} from './generations.ts';
import { projectionStoreAt } from './projectionStore.ts';
import { VERSION } from './schema.ts';

/** Throws `store_unavailable` if the file was deleted in the meantime. */
function publishFile(folder: string, file: string): void {
  try {
    renameSync(file, generationFile(folder, (currentGeneration(folder) ?? 0) + 1));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw storeUnavailableError(
      'The copy of the read models was deleted while it was built; rebuild it again.',
      error,
    );
  }
}

/**
 * Opens the next generation of the read models for a rebuild: a new one, or the one of an interrupted
 * rebuild. Throws `rebuild_running` while another rebuild runs.
 */
export async function openSqliteRebuildStore({
  folder,
}: {
  folder: string;
}): Promise<RebuildStore> {
  const file = buildingFile(folder, buildingGeneration(folder));
  try {
    const store = projectionStoreAt({ folder, file, exclusive: true, version: VERSION });
    return {
      ...store,
      async publish() {
        // Closing the last connection writes the -wal into the file, so only that file is renamed.
        await store.close();
        publishFile(folder, file);
      },
      async discard() {
        await store.close();
        removeDatabase(file);
      },
    };
  } catch (error) {
    if (isSqliteBusy(error))
      throw new TurnlogError(
        'rebuild_running',
        `Another rebuild of the read models in ${folder} is running.`,
        { cause: error },
      );
    throw readModelsNotOpened(file, error);
  }
}
