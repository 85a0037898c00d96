import type { DatabaseSync } from 'node:sqlite';

/**
 * Keeps SQLite from checkpointing within commits, whose outcomes would wait for it: 1,000 pages take
 * some 30 ms. Call the returned function after the outcome of each commit was passed on: it checkpoints
 * from this many pages of write-ahead log on.
 */
export function checkpointAfterCommits(database: DatabaseSync, pages: number): () => void {
  database.exec('PRAGMA wal_autocheckpoint = 0');
  const state = database.prepare('PRAGMA wal_checkpoint(NOOP)');
  return () => {
    try {
      const { log, checkpointed } = state.get() ?? {};
      if (Number(log) - Number(checkpointed) < pages) return;
      database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // As SQLite's own checkpoints: no event depends on it, and the next commit tries again.
    }
  };
}
