import { DatabaseSync } from 'node:sqlite';
import type { Version } from '../../../shared/readModels/version.ts';
import { createPrivateFile } from '../eventStore/database.ts';
import { isDamaged } from './failures.ts';
import { readModelsFolder, removeDatabase } from './generations.ts';

export interface GenerationFile {
  folder: string;
  file: string;
  /** True for one that keeps its lock until it is closed. */
  exclusive: boolean;
  version: Version;
}

/**
 * A file that may be lost needs no fsync per commit: synchronous=NORMAL keeps a WAL database
 * consistent through a crash of process or machine, and the checkpoint, which is in the same
 * transaction as the rows, says what is to be applied again. What is deleted is overwritten, for
 * erased texts.
 */
const PRAGMAS =
  'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 8000; PRAGMA cache_size = -8000; PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON;';

/** How long a batch waits for another projector's, in milliseconds, before a pause. */
const BUSY_TIMEOUT_MS = 1000;

function prepare({ file, exclusive, version }: GenerationFile): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: exclusive ? 0 : BUSY_TIMEOUT_MS });
  try {
    // Set before the first access, so that the lock is held from the beginning to the end and dies
    // with the process.
    if (exclusive) database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec(PRAGMAS);
    database.exec(`BEGIN IMMEDIATE; ${version.ddl} COMMIT`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Opens or creates one file for writing, with its tables. A damaged one is deleted: the log has
 * everything that was in it.
 * Errors: what the file system or SQLite throws.
 */
export function openGenerationFile(options: GenerationFile): DatabaseSync {
  const { folder, file } = options;
  createPrivateFile(readModelsFolder(folder), file);
  try {
    return prepare(options);
  } catch (error) {
    if (!isDamaged(error)) throw error;
    removeDatabase(file);
    createPrivateFile(readModelsFolder(folder), file);
    return prepare(options);
  }
}
