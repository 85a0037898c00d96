import type { Tokens } from '../../domain/schema.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { sumTokens } from '../../runs/model/modelLoop.ts';
import type { WholeTurn } from '../comparison/turnPair.ts';
import { readWholeTurns } from './wholeTurns.ts';

/** The turns of a replay's session, read in the order of the recorded ones. */
export interface ReplayedTurns {
  /**
   * The last try of a recorded turn that has ended, as far as they are recorded by now; undefined
   * where none has. Those of earlier turns are passed over.
   */
  lastTry(recorded: number): Promise<WholeTurn | undefined>;
  /** The last turn that was seen, an open one included; `shared` before the first. */
  lastTurn(): number;
  /** Whether a try of a later turn stands behind those of the recorded one that was asked for. */
  isPassed(recorded: number): boolean;
  /** What the tries of the turn took together that was asked for last, with summaries before them. */
  tokens(): Tokens;
}

/** How a session is read. */
interface Reading {
  sessionId: string;
  /** The last turn that it has of another one. */
  shared?: number;
  /** Told of each try that has ended, and of what those of the recorded turn took by then. */
  onTry: (turn: WholeTurn, recorded: number, tokens: number) => void;
}

/** What the log knows of what a turn took, with the summaries that were made before it. */
const tokensOf = ({ compactions, end }: WholeTurn): Tokens => {
  const own = (end?.data as { tokens?: Tokens } | undefined)?.tokens;
  return sumTokens([...compactions.map(({ call }) => call), ...(own ? [{ tokens: own }] : [])]);
};

/** Reads a session as it grows: what was read is not read again, but for a turn that was open. */
export function readReplayedTurns(
  source: StreamSource,
  { sessionId, shared = 0, onTry }: Reading,
): ReplayedTurns {
  let from = 0;
  let taken = { of: 0, tokens: sumTokens([]) };
  let lastTurn = shared;
  let lastOf = 0;
  let reading: AsyncGenerator<WholeTurn> | undefined;
  let next: WholeTurn | undefined;

  async function peek(): Promise<WholeTurn | undefined> {
    if (next) return next;
    reading ??= readWholeTurns(source, sessionId, { from, upTo: Infinity });
    try {
      const { value, done } = await reading.next();
      // What comes later is read anew, from what has ended on.
      if (done || !value.end) reading = undefined;
      if (done) return undefined;
      lastTurn = value.started.turn;
      lastOf = value.started.replay_of ?? 0;
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
        const tokens = tokensOf(turn);
        taken = { of, tokens: taken.of === of ? sumTokens([taken, { tokens }]) : tokens };
        onTry(turn, of, taken.tokens.total);
      }
      return last;
    },
    lastTurn: () => lastTurn,
    isPassed: (recorded) => lastOf > recorded,
    tokens: () => taken.tokens,
  };
}
