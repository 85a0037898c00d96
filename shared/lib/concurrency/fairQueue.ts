/** A queue in which accounts take turns, each with its own oldest entry first. */
interface FairQueue<Entry> {
  size(): number;
  push(account_id: string, entry: Entry): void;
  /** Returns the entry that `shift()` would remove; undefined when the queue is empty. */
  peek(): Entry | undefined;
  /**
   * Removes the next entry and returns it; undefined when the queue is empty. Accounts for which
   * `mayTake` is false keep their turns.
   */
  shift(mayTake?: (account_id: string) => boolean): Entry | undefined;
}

export function createFairQueue<Entry>(): FairQueue<Entry> {
  /** Entries by account, at least one each; the account whose turn it is comes first. */
  const queues = new Map<string, Entry[]>();
  let size = 0;

  return {
    size: () => size,
    push(account_id, entry) {
      size += 1;
      const queue = queues.get(account_id);
      if (queue) queue.push(entry);
      else queues.set(account_id, [entry]);
    },
    peek: () => queues.values().next().value?.[0],
    shift(mayTake) {
      for (const [account_id, queue] of queues) {
        if (mayTake?.(account_id) === false) continue;
        size -= 1;
        const entry = queue.shift();
        if (queue.length === 0) queues.delete(account_id);
        else if (queues.size > 1) {
          // An account that is set again moves behind all others.
          queues.delete(account_id);
          queues.set(account_id, queue);
        }
        return entry;
      }
      return undefined;
    },
  };
}
