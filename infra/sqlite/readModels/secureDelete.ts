/**
 * Removes erased data from all files of the read models. SQLite overwrites deleted rows in the database
 * file itself (secure_delete). This module truncates the write-ahead file, which contains old pages, and
 * deletes the files of interrupted rebuilds.
 */
import type { DatabaseSync } from 'node:sqlite';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { deleteUnerasedLeftovers } from './generations.ts';

const RETRY = { firstMs: 50, longestMs: 2_000 };

interface WalCleanup {
  /** Call it after an erasure was committed. Never throws. */
  erased(): void;
  /** Ends the retries. Closing the last connection truncates the write-ahead file as well. */
  close(): void;
}

interface OpenFile {
  database: DatabaseSync;
  folder: string;
  version: Version;
}

/**
 * Truncates the write-ahead file. Waits for readers of older snapshots as long as the connection waits
 * for locks; false when such readers remain.
 */
function truncateWal(database: DatabaseSync): boolean {
  try {
    return database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0;
  } catch {
    return false;
  }
}

function readLastErasure(database: DatabaseSync): Position | undefined {
  const row = database.prepare('SELECT max(position) AS last FROM erasures').get();
  return (row?.['last'] as Position | null | undefined) ?? undefined;
}

/**
 * First completes the cleanup that a process may have left unfinished. Retries while readers remain,
 * until the file is closed. Throws SQLite's errors.
 */
export function createWalCleanup({ database, folder, version }: OpenFile): WalCleanup {
  const backoff = createBackoff(RETRY);
  let timer: NodeJS.Timeout | undefined;

  function truncate(): void {
    clearTimeout(timer);
    if (!database.isOpen || truncateWal(database)) return backoff.reset();
    timer = setTimeout(truncate, backoff.next()).unref();
  }

  function erased(): void {
    truncate();
    const last = readLastErasure(database);
    if (last !== undefined) deleteUnerasedLeftovers(folder, last, version);
  }

  if (readLastErasure(database) !== undefined) erased();
  return { erased, close: () => clearTimeout(timer) };
}
