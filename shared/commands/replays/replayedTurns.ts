import type { StreamSource } from '../../eventlog/noteDamage.ts';
import type { WholeTurn } from './turnPair.ts';
import { wholeTurns } from './wholeTurns.ts';

/** The turns of a replay's session, read in the order of the recorded ones. */
export interface ReplayedTurns {
  /**
   * The last try of a recorded turn that has ended, as far as they are recorded by now; undefined
   * where none has. Those of earlier turns are passed over. Errors: those of wholeTurns.
   */
  lastTry(recorded: number): Promise<WholeTurn | undefined>;
  /** The last turn that was seen, an open one included; `shared` before the first. */
  lastTurn(): number;
}

/** Reads a session as it grows: what was read is not read again, but for a turn that was open. */
export function readReplayedTurns(
  source: StreamSource,
  sessionId: string,
  shared: number,
): ReplayedTurns {
  let from = 0;
  let lastTurn = shared;
  let reading: AsyncGenerator<WholeTurn> | undefined;
  let next: WholeTurn | undefined;

  async function peek(): Promise<WholeTurn | undefined> {
    if (next) return next;
    reading ??= wholeTurns(source, sessionId, { from, upTo: Infinity });
    try {
      const { value, done } = await reading.next();
      // What comes later is read anew, from what has ended on.
      if (done || !value.end) reading = undefined;
      if (done) return undefined;
      lastTurn = value.started.turn;
      if (!value.end) return undefined;
      from = value.revision + 1;
      return (next = value);
    } catch (error) {
      reading = undefined;
      throw error;
    }
  }

  return {
    async lastTry(recorded) {
      let last: WholeTurn | undefined;
      for (let turn = await peek(); turn; turn = await peek()) {
        const of = turn.started.replay_of ?? 0;
        if (of > recorded) return last;
        if (of === recorded) last = turn;
        next = undefined;
      }
      return last;
    },
    lastTurn: () => lastTurn,
  };
}
