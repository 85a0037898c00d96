import type { Tokens } from '../../domain/schema.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { sumTokens } from '../../runs/model/modelLoop.ts';
import { codeOf } from '../comparison/compareTurn.ts';
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
  /** Attempts of a recorded turn, the last requested one, that were open when their process died. */
  crashes(recorded: number): number;
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

/** A deadline ends the turn of a process that died so long ago that it is not listed any more. */
const hasCrashed = ({ end }: WholeTurn): boolean =>
  ['crash', 'deadline'].includes(codeOf(end) ?? '');

/** Reads a session incrementally. Only a turn that was open is read again. */
export function readReplayedTurns(
  source: StreamSource,
  { sessionId, shared = 0, onTry }: Reading,
): ReplayedTurns {
  let from = 0;
  let tries = { of: 0, tokens: sumTokens([]), crashes: 0 };
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
        const earlier = tries.of === of ? tries : { tokens: sumTokens([]), crashes: 0 };
        tries = {
          of,
          tokens: sumTokens([earlier, { tokens: tokensOf(turn) }]),
          crashes: earlier.crashes + (hasCrashed(turn) ? 1 : 0),
        };
        onTry(turn, of, tries.tokens.total);
      }
      return last;
    },
    lastTurn: () => lastTurn,
    isPassed: (recorded) => lastOf > recorded,
    tokens: () => tries.tokens,
    crashes: (recorded) => (tries.of === recorded ? tries.crashes : 0),
  };
}
