import type { Tokens } from '../domain/schema.ts';
import type { ForkedFrom, ToolCalledData } from './events.ts';
import type { TurnContext } from './turns/promptParts.ts';
import type { Position } from '../ports/eventStore.ts';
import { integer, json, orNull, table, text, word } from '../readModels/table.ts';

/** The tables that sessions are shown from: a part of TABLES. */
export const SESSION_TABLES = {
  sessions: table({
    columns: {
      session_id: text,
      agent_id: text,
      account_id: text,
      /** `running` while its last turn is open; of an `erased` one no turn is kept. */
      status: word<'idle' | 'running' | 'erased'>(),
      /** How many turns began, those that a fork shares included. */
      turns: integer,
      title: orNull(text),
      labels: json<Record<string, string>>(),
      /** The session and the turn that it was forked from. */
      forked_from: orNull(json<ForkedFrom>()),
      /** Of a session that a replay made: the replay, and the recorded session. */
      replay_id: orNull(text),
      replay_of: orNull(text),
      created_at: text,
      updated_at: text,
      revision: integer,
    },
    key: ['session_id'],
    indexes: [
      { on: ['account_id', 'session_id'], where: "status <> 'erased' AND replay_id IS NULL" },
      { on: ['account_id', 'agent_id', 'session_id'], where: "status <> 'erased'" },
      { on: ['account_id', 'session_id'], where: "status = 'running'" },
      { on: ['account_id', 'created_at'], where: "status <> 'erased'" },
      { on: ['account_id', 'updated_at'], where: "status <> 'erased'" },
      { on: ['account_id', 'replay_id', 'session_id'], where: 'replay_id IS NOT NULL' },
      { on: ['replay_of', 'session_id'], where: 'replay_of IS NOT NULL' },
    ],
  }),

  /** What sessions are found by; the labels themselves stand in their rows. */
  session_labels: table({
    columns: { session_id: text, token: text, account_id: text, revision: integer },
    key: ['session_id', 'token'],
    indexes: [{ on: ['account_id', 'token', 'session_id'] }],
  }),

  turns: table({
    columns: {
      session_id: text,
      turn: integer,
      status: word<'running' | 'completed' | 'failed' | 'interrupted'>(),
      input: text,
      /** Of the agent's stream, that it runs with. */
      agent_revision: integer,
      output: orNull(text),
      model: text,
      tool_used: text,
      /** Names of the functions that the model was offered. */
      offered: json<string[]>(),
      tool_calls: json<Omit<ToolCalledData, 'turn'>[]>(),
      tokens: orNull(json<Tokens>()),
      /** Of a completed turn: how the provider says that its answer ended. */
      finish_reason: orNull(text),
      /** Of a failed turn: its code and message; of an interrupted one: the reason as the code. */
      error: orNull(json<{ code: string; message: string }>()),
      /** How much of the session its model sees; null of old turns, which do not say so. */
      context: orNull(json<TurnContext>()),
      started_at: text,
      ended_at: orNull(text),
      /** Whose run it is: an API key, or `system`. */
      key_id: text,
      /** The instance that runs it, and when it gives up at the latest. */
      owner: text,
      deadline: text,
      /** Of the event that ended it: the order in which turns are indexed. */
      end_position: orNull(word<Position>()),
      revision: integer,
    },
    key: ['session_id', 'turn'],
    indexes: [
      { on: ['session_id', 'turn'], where: "status = 'running'" },
      { on: ['end_position'], where: 'end_position IS NOT NULL' },
    ],
    longRows: true,
    rewritten: true,
  }),

  /**
   * What turns that have ended are found by: the tokens of their words, with a blank between two. No
   * projection fills it: the indexer does, from the rows of `turns`.
   */
  turn_words: table({
    columns: { session_id: text, turn: integer, words: text, revision: integer },
    key: ['session_id', 'turn'],
    longRows: true,
  }),
};

/** How far `turn_words` is filled: every turn that ended up to there is in it. */
export const INDEXED = table({
  columns: { only_row: integer, position: word<Position>() },
  key: ['only_row'],
});
