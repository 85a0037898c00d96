interface Entry {
  cursor: string;
  /** The events that were taken up to here. */
  ids: string[];
  /** When its event was recorded; undefined where there is none to wait for. */
  waitsSince: string | undefined;
}

/** What is on its way, in the order of the log: messages of several keys end in any order. */
export interface ProgressWindow {
  /** An event that is on its way; to be called once it was taken. */
  begin(cursor: string, event: { id: string; time: string }): () => void;
  /** There is nothing to send up to here: the event was taken before, where there is one. */
  pass(cursor: string, id?: string): void;
  /** When the oldest event on its way was recorded. */
  oldest(): string | undefined;
}

/** `onReached` is told of each cursor up to which everything was taken, and of the events that were. */
export function createProgressWindow(
  onReached: (cursor: string, ids: readonly string[]) => void,
): ProgressWindow {
  const entries: Entry[] = [];

  function advance(): void {
    let reached: string | undefined;
    const ids: string[] = [];
    while (entries[0] && entries[0].waitsSince === undefined) {
      const entry = entries.shift()!;
      reached = entry.cursor;
      ids.push(...entry.ids);
    }
    if (reached !== undefined) onReached(reached, ids);
  }

  return {
    begin(cursor, { id, time }) {
      const entry: Entry = { cursor, ids: [id], waitsSince: time };
      entries.push(entry);
      return () => {
        entry.waitsSince = undefined;
        advance();
      };
    },
    pass(cursor, id) {
      const ids = id === undefined ? [] : [id];
      const last = entries.at(-1);
      // Many may pass while one is on its way.
      if (last && last.waitsSince === undefined) {
        last.cursor = cursor;
        last.ids.push(...ids);
      } else entries.push({ cursor, ids, waitsSince: undefined });
      advance();
    },
    oldest: () => entries[0]?.waitsSince,
  };
}
