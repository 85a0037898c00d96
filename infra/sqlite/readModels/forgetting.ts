/**
 * Sees to it that no file of the read models holds what was erased. What is deleted in a file is
 * overwritten there (secure_delete); here go the write-ahead file, which has the pages as they were,
 * and what an interrupted rebuild left.
 */
import type { DatabaseSync } from 'node:sqlite';
import { createBackoff } from '../../../shared/lib/time/backoff.ts';
import type { Position } from '../../../shared/ports/eventStore.ts';
import type { Version } from '../../../shared/readModels/version.ts';
import { dropLeftovers } from './generations.ts';

const PAUSES = { firstMs: 50, longestMs: 2_000 };

interface Forgetting {
  /** To be called when an erasure was committed. Never throws. */
  erased(): void;
  /** Ends what is tried again. The last connection's close empties the write-ahead file as well. */
  close(): void;
}

interface File {
  database: DatabaseSync;
  folder: string;
  version: Version;
}

/**
 * Empties the write-ahead file, which readers of an older moment keep from it. Waits for them as
 * long as the connection waits for locks. False where they are still there.
 */
function emptied(database: DatabaseSync): boolean {
  try {
    return database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0;
  } catch {
    return false;
  }
}

function lastErasure(database: DatabaseSync): Position | undefined {
  const found = database.prepare('SELECT max(position) AS last FROM erasures').get();
  return (found?.['last'] as Position | null | undefined) ?? undefined;
}

/**
 * Begins with what a process that ended in between may have left undone. Readers that stay are tried
 * again until the file is closed. Errors: what SQLite throws.
 */
export function createForgetting({ database, folder, version }: File): Forgetting {
  const pauses = createBackoff(PAUSES);
  let timer: NodeJS.Timeout | undefined;

  function empty(): void {
    clearTimeout(timer);
    if (!database.isOpen || emptied(database)) return pauses.reset();
    timer = setTimeout(empty, pauses.next()).unref();
  }

  function erased(): void {
    empty();
    const last = lastErasure(database);
    if (last !== undefined) dropLeftovers(folder, last, version);
  }

  if (lastErasure(database) !== undefined) erased();
  return { erased, close: () => clearTimeout(timer) };
}
