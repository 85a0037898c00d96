/**
 * Removes erased data from all files of the read models. SQLite overwrites deleted rows in the database
 * file itself (secure_delete). This module truncates the write-ahead file, which contains old pages, and
 * deletes the files of interrupted rebuilds.
 */
import type { DatabaseSync } from 'node:sqlite';
import { createBackoff } from '../../../../shared/lib/time/backoff.ts';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import type { Version } from '../../../../shared/readModels/version.ts';
import { deleteUnerasedLeftovers } from '../generations.ts';

const RETRY = { firstMs: 50, longestMs: 2_000 };
/** A cleanup writes to the disk while batches of events wait: after some at once, there are five per second. */
const EVERY_MS = 200;
const AT_ONCE = 20;
/**
 * How long a cleanup waits for readers, in milliseconds: long enough for reads of single rows, because
 * batches wait meanwhile. One that is late waits longer, because readers may overlap without a gap.
 */
const WAIT_MS = { usually: 10, late: 250 };
const LATE_MS = 10_000;
/** How often files that are being built are examined again, until their processes have ended. */
const EXAMINE_MS = 2_000;

interface WalCleanup {
  /** Call it after an erasure was committed. Never throws. */
  erased(): void;
  /**
   * Ends the retries with a last one: another process, which knows of no cleanup, may keep the file open.
   */
  close(): void;
}

interface OpenFile {
  database: DatabaseSync;
  folder: string;
  version: Version;
}

/** Truncates the write-ahead file. False when readers of older snapshots remain after this time. */
function truncateWal(database: DatabaseSync, waitMs: number): boolean {
  const timeout = database.prepare('PRAGMA busy_timeout').get()!['timeout'] as number;
  try {
    database.exec(`PRAGMA busy_timeout = ${waitMs}`);
    return database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy'] === 0;
  } catch {
    return false;
  } finally {
    database.exec(`PRAGMA busy_timeout = ${timeout}`);
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
  let examining: NodeJS.Timeout | undefined;
  /** When all AT_ONCE cleanups are available again. */
  let restedAt = -Infinity;
  /** When the first erasure was committed that the write-ahead file may still contain. */
  let erasedAt: number | undefined;

  function truncateAfter(pauseMs: number): void {
    timer = setTimeout(truncate, pauseMs).unref();
  }

  function truncate(): void {
    timer = undefined;
    if (!database.isOpen) return;
    const isLate = performance.now() - (erasedAt ?? Infinity) > LATE_MS;
    if (!truncateWal(database, WAIT_MS[isLate ? 'late' : 'usually']))
      return truncateAfter(backoff.next());
    backoff.reset();
    restedAt = Math.max(restedAt, performance.now()) + EVERY_MS;
    erasedAt = undefined;
  }

  function deleteLeftovers(last: Position): void {
    clearTimeout(examining);
    if (deleteUnerasedLeftovers(folder, last, version)) return;
    examining = setTimeout(deleteLeftovers, EXAMINE_MS, last).unref();
  }

  function erased(): void {
    const now = performance.now();
    erasedAt ??= now;
    const pauseMs = restedAt - now - (AT_ONCE - 1) * EVERY_MS;
    if (!timer && pauseMs > 0) truncateAfter(pauseMs);
    else if (!timer) truncate();
    const last = readLastErasure(database);
    if (last !== undefined) deleteLeftovers(last);
  }

  if (readLastErasure(database) !== undefined) erased();
  return {
    erased,
    close() {
      clearTimeout(timer);
      clearTimeout(examining);
      if (erasedAt !== undefined && database.isOpen) truncateWal(database, WAIT_MS.late);
    },
  };
}
