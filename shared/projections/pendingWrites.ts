import type { Position } from '../ports/eventStore.ts';

/** Ids whose writes are remembered one by one. */
const MAX_IDS = 10_000;

/**
 * The last positions of acknowledged writes that the read models do not show yet, by the ids of what
 * they concern.
 */
export function createPendingWrites() {
  /** In about the order of the positions. */
  const positions = new Map<string, Position>();
  /** The last position of writes that are no longer remembered by their ids. */
  let unnamed: Position | undefined;

  function forgetOldest(): void {
    const [id, position] = positions.entries().next().value!;
    positions.delete(id);
    if (unnamed === undefined || position > unnamed) unnamed = position;
  }

  return {
    add(id: string, position: Position): void {
      const before = positions.get(id);
      positions.delete(id);
      positions.set(id, before !== undefined && before > position ? before : position);
      if (positions.size > MAX_IDS) forgetOldest();
    },

    /** The position to wait for before a query about this id; undefined if there is none. */
    find(id: string): Position | undefined {
      const own = positions.get(id);
      return own === undefined || (unnamed !== undefined && unnamed > own) ? unnamed : own;
    },

    /** Forgets the oldest writes, which are shown up to this position. */
    forgetUpTo(shown: Position): void {
      for (const [id, position] of positions) {
        if (position > shown) break;
        positions.delete(id);
      }
      if (unnamed !== undefined && unnamed <= shown) unnamed = undefined;
    },
  };
}
