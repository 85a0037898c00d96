/**
 * Maps numbers of recorded turns to those of their replays, for turns answered in both sessions.
 */
export interface TurnNumbers {
  /** Pairs must be added in order. */
  add(recorded: number, replayed: number): void;
  /**
   * The first turn that replays the recorded turn or a later one; undefined if there is none yet.
   */
  from(recorded: number): number | undefined;
  /** The last turn that replays the recorded turn or an earlier one; 0 if there is none. */
  upTo(recorded: number): number;
}

/** `shared`: the last turn that both sessions contain under the same number. */
export function createTurnNumbers(shared: number): TurnNumbers {
  const pairs: { recorded: number; replayed: number }[] = [];
  return {
    add: (recorded, replayed) => void pairs.push({ recorded, replayed }),
    from: (turn) =>
      turn <= shared ? turn : pairs.find(({ recorded }) => recorded >= turn)?.replayed,
    upTo: (turn) =>
      pairs.findLast(({ recorded }) => recorded <= turn)?.replayed ?? Math.min(turn, shared),
  };
}
