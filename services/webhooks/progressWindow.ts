interface Entry {
  cursor: string;
  /** When its event was recorded; undefined where there is none to wait for. */
  waitsSince: string | undefined;
}

/** What is on its way, in the order of the log: messages of several keys end in any order. */
export interface ProgressWindow {
  /** An event that is on its way; to be called once it was taken. */
  begin(cursor: string, recordedAt: string): () => void;
  /** There is nothing to send up to here. */
  pass(cursor: string): void;
  /** When the oldest event on its way was recorded. */
  oldest(): string | undefined;
}

/** `onReached` is told of each cursor up to which everything was taken. */
export function createProgressWindow(
  onReached: (cursor: string, taken: boolean) => void,
): ProgressWindow {
  const entries: Entry[] = [];

  function advance(taken: boolean): void {
    let reached: string | undefined;
    while (entries[0] && entries[0].waitsSince === undefined)
      reached = entries.shift()!.cursor;
    if (reached !== undefined) onReached(reached, taken);
  }

  return {
    begin(cursor, recordedAt) {
      const entry: Entry = { cursor, waitsSince: recordedAt };
      entries.push(entry);
      return () => {
        entry.waitsSince = undefined;
        advance(true);
      };
    },
    pass(cursor) {
      const last = entries.at(-1);
      // Many may pass while one is on its way.
      if (last && last.waitsSince === undefined) last.cursor = cursor;
      else entries.push({ cursor, waitsSince: undefined });
      advance(false);
    },
    oldest: () => entries[0]?.waitsSince,
  };
}
