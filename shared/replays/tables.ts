import type {
  TurnOutcome,
  ReplayEnd,
  ReplaySettings,
  SessionEnd,
  TurnComparison,
} from './events.ts';
import type { ReplaySums } from './replaySums.ts';
import { integer, json, orNull, table, text, word } from '../readModels/table.ts';

/** The tables that replays are read from: a part of TABLES. They hold no plain text. */
export const REPLAY_TABLES = {
  replays: table({
    columns: {
      replay_id: text,
      account_id: text,
      status: word<'running' | ReplayEnd['status'] | 'erased'>(),
      /** Why it failed. */
      code: orNull(text),
      /** With encrypted texts, as in the log; null once they are erased. */
      settings: orNull(json<ReplaySettings>()),
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

  replay_sessions: table({
    columns: {
      replay_id: text,
      session_id: text,
      /** Its own turns that had begun when the replay was requested. */
      turns: integer,
      status: word<'waiting' | 'running' | SessionEnd['status']>(),
      /** Why it ended before its last turn. */
      code: orNull(text),
      /** The session in which it is replayed; null before that one has started. */
      replay_session_id: orNull(text),
      revision: integer,
    },
    key: ['replay_id', 'session_id'],
    rewritten: true,
  }),

  replay_turns: table({
    columns: {
      replay_id: text,
      /** Session and turn, made by `replayEntry`; pages are in this order. */
      entry: text,
      session_id: text,
      turn: integer,
      outcome: word<TurnOutcome>(),
      /** Number of its checks that failed. */
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

/** Digits of a turn number in an entry; no session has more turns. */
const DIGITS = 10;

/** The sort key of a replayed turn: by session, then by turn number. */
export const replayEntry = (session_id: string, turn: number): string =>
  `${session_id}.${String(turn).padStart(DIGITS, '0')}`;
