import { DatabaseSync } from 'node:sqlite';
import type { Version } from '../../../shared/readModels/version.ts';
import { createPrivateFile } from '../eventStore/database.ts';
import { isDamaged } from './failures.ts';
import { readModelsFolder, removeDatabase } from './generations.ts';

export interface GenerationFile {
  folder: string;
  file: string;
  /** True to hold the lock until the file is closed. */
  exclusive: boolean;
  version: Version;
}

/**
 * The file can be refilled from the log, so commits need no fsync: with synchronous=NORMAL a WAL
 * database stays consistent after a crash of the process or the machine, and the checkpoint, which is
 * in the same transaction as the rows, tells which events to apply again. secure_delete overwrites
 * deleted rows, because erased texts must not remain.
 */
const PRAGMAS =
  'PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON; PRAGMA journal_size_limit = 67108864;';

/**
 * Size of the write-ahead log, in pages, at which a commit of a rebuild checkpoints it, in 50 to 100 ms.
 * Clients wait for live commits: projectionStore.ts checkpoints after those.
 */
const REBUILD_CHECKPOINT_PAGES = 8_000;

/** How long a batch waits for the batch of another projector, in milliseconds, before it is retried. */
const BUSY_TIMEOUT_MS = 1000;

function prepare({ file, exclusive, version }: GenerationFile): DatabaseSync {
  const database = new DatabaseSync(file, { timeout: exclusive ? 0 : BUSY_TIMEOUT_MS });
  try {
    // Set before the first access: the lock is then held until the file is closed or the process ends.
    if (exclusive) database.exec('PRAGMA locking_mode = EXCLUSIVE');
    database.exec(PRAGMAS);
    if (exclusive) database.exec(`PRAGMA wal_autocheckpoint = ${REBUILD_CHECKPOINT_PAGES}`);
    database.exec(`BEGIN IMMEDIATE; ${version.ddl} COMMIT`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Opens or creates one file for writing, with its tables. A damaged file is replaced, because the log
 * has all of its content. Throws the errors of the file system and SQLite.
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
