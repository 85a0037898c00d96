import type { Checkpoint } from '../../shared/ports/eventStore.ts';

interface Entry {
  checkpoint: Checkpoint;
  /** When its event was recorded; undefined where there is none to wait for. */
  waitsSince: string | undefined;
}

/** What is on its way, in the order of the log: messages of several keys end in any order. */
export interface ProgressWindow {
  /** An event that is on its way; to be called once it was taken. */
  begin(checkpoint: Checkpoint, recordedAt: string): () => void;
  /** There is nothing to send up to here. */
  pass(checkpoint: Checkpoint): void;
  /** When the oldest event on its way was recorded. */
  oldest(): string | undefined;
}

/** `onReached` is told of each checkpoint up to which everything was taken. */
export function createProgressWindow(
  onReached: (checkpoint: Checkpoint, taken: boolean) => void,
): ProgressWindow {
  const entries: Entry[] = [];

  function advance(taken: boolean): void {
    let reached: Checkpoint | undefined;
    while (entries[0] && entries[0].waitsSince === undefined)
      reached = entries.shift()!.checkpoint;
    if (reached) onReached(reached, taken);
  }

  return {
    begin(checkpoint, recordedAt) {
      const entry: Entry = { checkpoint, waitsSince: recordedAt };
      entries.push(entry);
      return () => {
        entry.waitsSince = undefined;
        advance(true);
      };
    },
    pass(checkpoint) {
      const last = entries.at(-1);
      // Many may pass while one is on its way.
      if (last && last.waitsSince === undefined) last.checkpoint = checkpoint;
      else entries.push({ checkpoint, waitsSince: undefined });
      advance(false);
    },
    oldest: () => entries[0]?.waitsSince,
  };
}
