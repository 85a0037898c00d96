import type { Position } from '../ports/eventStore.ts';

/** Ids whose writes are remembered one by one. */
const MAX_IDS = 10_000;

/**
 * The last positions of acknowledged writes that the read models do not show yet, by the ids of what
 * they concern. `shown` is the position up to which everything is shown.
 */
export function createPendingWrites(shown: () => Position | undefined) {
  /** In about the order of the positions. */
  const positions = new Map<string, Position>();
  /** The last position of a write that is no longer remembered by its id. */
  let unnamed: Position | undefined;

  const isShown = (position: Position): boolean => {
    const reached = shown();
    return reached !== undefined && position <= reached;
  };

  /** Forgets what is shown, and names no more than MAX_IDS. */
  function trim(): void {
    for (const [id, position] of positions) {
      if (positions.size <= MAX_IDS && !isShown(position)) return;
      positions.delete(id);
      if (!isShown(position) && (unnamed === undefined || position > unnamed)) unnamed = position;
    }
  }

  return {
    add(id: string, position: Position): void {
      const before = positions.get(id);
      positions.delete(id);
      positions.set(id, before !== undefined && before > position ? before : position);
      trim();
    },

    /** The position to wait for before a query about this id; undefined if there is none. */
    find(id: string): Position | undefined {
      const own = positions.get(id);
      const last = own === undefined || (unnamed !== undefined && unnamed > own) ? unnamed : own;
      return last === undefined || isShown(last) ? undefined : last;
    },
  };
}
