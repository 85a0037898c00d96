interface Entry {
  cursor: string;
  /** Delivered events that the cursor covers. */
  ids: string[];
  /** When the pending event was recorded; undefined once it is delivered. */
  pendingSince: string | undefined;
}

/**
 * Deliveries finish in any order. The sequence sorts them by log position, because only the cursor
 * before the oldest pending event can be committed. It remembers which events after that cursor are
 * delivered.
 */
export interface CommitSequence {
  /** Restarts at the committed cursor with no pending events. */
  restart(): void;
  isDelivered(id: string): boolean;
  /** Adds an event whose delivery has begun. Call the returned function once it is delivered. */
  begin(cursor: string, event: { id: string; time: string }): () => void;
  /**
   * Adds a cursor up to which there is nothing to deliver, and the id of the already delivered
   * event there, if any.
   */
  skip(cursor: string, id?: string): void;
  /** When the oldest pending event was recorded. */
  oldestPending(): string | undefined;
}

/**
 * Calls `onCommit` with each cursor that has no pending events before it, and the number of
 * deliveries that it covers.
 */
export function createCommitSequence(
  onCommit: (cursor: string, deliveries: number) => void,
): CommitSequence {
  const entries: Entry[] = [];
  /** Ids of delivered events after the committed cursor. */
  const delivered = new Set<string>();

  function commit(): void {
    let cursor: string | undefined;
    let deliveries = 0;
    while (entries[0] && entries[0].pendingSince === undefined) {
      const entry = entries.shift()!;
      cursor = entry.cursor;
      deliveries += entry.ids.length;
      // Events before the committed cursor are not followed again.
      for (const id of entry.ids) delivered.delete(id);
    }
    if (cursor !== undefined) onCommit(cursor, deliveries);
  }

  return {
    restart: () => void entries.splice(0),
    isDelivered: (id) => delivered.has(id),
    begin(cursor, { id, time }) {
      const entry: Entry = { cursor, ids: [id], pendingSince: time };
      entries.push(entry);
      return () => {
        entry.pendingSince = undefined;
        delivered.add(id);
        commit();
      };
    },
    skip(cursor, id) {
      const ids = id === undefined ? [] : [id];
      const last = entries.at(-1);
      // Skipped cursors are merged, because many can follow while one event is pending.
      if (last && last.pendingSince === undefined) {
        last.cursor = cursor;
        last.ids.push(...ids);
      } else entries.push({ cursor, ids, pendingSince: undefined });
      commit();
    },
    oldestPending: () => entries[0]?.pendingSince,
  };
}
