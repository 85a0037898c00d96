import type {
  TurnOutcome,
  ReplayEnd,
  ReplaySettings,
  SessionEnd,
  TurnComparison,
} from './events.ts';
import type { ReplaySums } from './replaySums.ts';
import { integer, json, orNull, table, text, word } from '../readModels/table.ts';

/** The settings with which a replay replaces recorded ones. */
export interface ReplayReplacements extends Pick<
  ReplaySettings,
  'model' | 'agent_id' | 'agent_revision'
> {
  /** True if it has an instruction. */
  instruction: boolean;
}

/** Tables of replays, part of TABLES. They contain no plaintext. */
export const REPLAY_TABLES = {
  replays: table({
    columns: {
      replay_id: text,
      account_id: text,
      status: word<'running' | ReplayEnd['status'] | 'erased'>(),
      /** Why the replay failed. */
      code: orNull(text),
      replacements: json<ReplayReplacements>(),
      sums: json<ReplaySums>(),
      created_at: text,
      updated_at: text,
      revision: integer,
    },
    key: ['replay_id'],
    indexes: [
      { on: ['replay_id'], where: "status = 'running'" },
      { on: ['account_id', 'replay_id'], where: "status <> 'erased'" },
    ],
    rewritten: true,
  }),

  /** Apart from the replays, whose rows every event rewrites: the texts may be large. */
  replay_settings: table({
    columns: {
      replay_id: text,
      /** Texts are encrypted as in the log. */
      settings: json<ReplaySettings>(),
      revision: integer,
    },
    key: ['replay_id'],
  }),

  replay_sessions: table({
    columns: {
      replay_id: text,
      session_id: text,
      /** The session's turns that had begun when the replay was requested. */
      turns: integer,
      status: word<'waiting' | 'running' | SessionEnd['status']>(),
      /** Why the session's replay ended before its last turn. */
      code: orNull(text),
      /** The session that replays this one; null until it has started. */
      replay_session_id: orNull(text),
      revision: integer,
    },
    key: ['replay_id', 'session_id'],
    rewritten: true,
  }),

  replay_turns: table({
    columns: {
      replay_id: text,
      /** Sort key of session and turn from `replayEntry`. Pages are in this order. */
      entry: text,
      session_id: text,
      turn: integer,
      outcome: word<TurnOutcome>(),
      /** Number of failed checks. */
      failed_checks: integer,
      comparison: json<TurnComparison>(),
      revision: integer,
    },
    key: ['replay_id', 'entry'],
    indexes: [
      { on: ['replay_id', 'outcome', 'entry'] },
      { on: ['replay_id', 'entry'], where: 'failed_checks > 0' },
    ],
  }),
};

/** Digits of a turn number in an entry. No session has more turns than fit. */
const DIGITS = 10;

/** The sort key of a replayed turn: session, then turn number. */
export const replayEntry = (session_id: string, turn: number): string =>
  `${session_id}.${String(turn).padStart(DIGITS, '0')}`;
