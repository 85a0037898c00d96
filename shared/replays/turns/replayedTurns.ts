import type { Tokens } from '../../domain/schema.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { sumTokens } from '../../runs/model/modelLoop.ts';
import type { WholeTurn } from '../comparison/turnPair.ts';
import { readWholeTurns } from './wholeTurns.ts';

/** Reads the turns of a replay's session in the order of the recorded turns. */
export interface ReplayedTurns {
  /**
   * The last ended attempt of a recorded turn, as recorded so far; undefined if there is none.
   * Attempts of earlier turns are skipped.
   */
  lastTry(recorded: number): Promise<WholeTurn | undefined>;
  /** The last turn read, including an open one; `shared` before the first. */
  lastTurn(): number;
  /** True if an attempt of a later turn follows the attempts of this recorded turn. */
  isPassed(recorded: number): boolean;
  /** Tokens of all attempts of the last requested turn, including the compactions before them. */
  tokens(): Tokens;
}

/** The session to read. */
interface Reading {
  sessionId: string;
  /** The last turn shared with another session. */
  shared?: number;
  /**
   * Called with each ended attempt, and the tokens that attempts of its recorded turn used so far.
   */
  onTry: (turn: WholeTurn, recorded: number, tokens: number) => void;
}

/** The recorded tokens of a turn, including the compactions before it. */
const tokensOf = ({ compactions, end }: WholeTurn): Tokens => {
  const ownTokens = (end?.data as { tokens?: Tokens } | undefined)?.tokens;
  return sumTokens([
    ...compactions.map(({ call }) => call),
    ...(ownTokens ? [{ tokens: ownTokens }] : []),
  ]);
};

/** Reads a session incrementally. Only a turn that was open is read again. */
export function readReplayedTurns(
  source: StreamSource,
  { sessionId, shared = 0, onTry }: Reading,
): ReplayedTurns {
  let from = 0;
  let used = { of: 0, tokens: sumTokens([]) };
  let lastTurn = shared;
  let lastOf = 0;
  let reading: AsyncGenerator<WholeTurn> | undefined;
  let next: WholeTurn | undefined;

  async function peek(): Promise<WholeTurn | undefined> {
    if (next) return next;
    reading ??= readWholeTurns(source, sessionId, { from, upTo: Infinity });
    try {
      const { value, done } = await reading.next();
      // The next read starts after the last ended turn.
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
        used = { of, tokens: used.of === of ? sumTokens([used, { tokens }]) : tokens };
        onTry(turn, of, used.tokens.total);
      }
      return last;
    },
    lastTurn: () => lastTurn,
    isPassed: (recorded) => lastOf > recorded,
    tokens: () => used.tokens,
  };
}
