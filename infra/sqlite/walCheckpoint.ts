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
      // SQLite begins the write-ahead log anew only at a commit that finds it checkpointed, and no
      // reader in it. While readers overlap, each commit is a chance.
      const least = Number(log) < 4 * pages ? pages : 1;
      if (Number(log) - Number(checkpointed) < least) return;
      database.exec('PRAGMA wal_checkpoint(PASSIVE)');
    } catch {
      // As SQLite's own checkpoints: no event depends on it, and the next commit tries again.
    }
  };
}
