/** Which turns of a replay's session stand for which recorded ones, as far as both have an answer. */
export interface TurnNumbers {
  /** They come in order. */
  add(recorded: number, replayed: number): void;
  /** The first turn that stands for the recorded one or a later one; undefined where none does yet. */
  from(recorded: number): number | undefined;
  /** The last turn that stands for the recorded one or an earlier one; 0 where none does. */
  upTo(recorded: number): number;
}

/** `shared`: the last turn that both sessions have, under the same number. */
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
