import type { Tokens } from '../domain/schema.ts';
import type { ForkedFrom, ToolCalledData } from './events.ts';
import type { TurnContext } from './turns/promptParts.ts';
import type { Position } from '../ports/eventStore.ts';
import { integer, json, orNull, protectedColumn, table, text, word } from '../readModels/table.ts';

/** Tables of sessions and turns, part of TABLES. */
export const SESSION_TABLES = {
  sessions: table({
    columns: {
      session_id: text,
      agent_id: text,
      account_id: text,
      /** `running` while the last turn is open. An `erased` session has no turns. */
      status: word<'idle' | 'running' | 'erased'>(),
      /** Number of turns, including those shared by a fork. */
      turns: integer,
      /** The numbers of its own turns, without those shared by a fork, by outcome. */
      turns_completed: integer,
      turns_failed: integer,
      turns_interrupted: integer,
      title: protectedColumn(orNull(text), null),
      labels: protectedColumn(json<Record<string, string>>(), {}),
      /** The session and turn from which this session was forked. */
      forked_from: orNull(json<ForkedFrom>()),
      /** The same session, for its index. */
      fork_of: orNull(text),
      /** The replay that made this session, and the recorded session; otherwise null. */
      replay_id: orNull(text),
      replay_of: orNull(text),
      created_at: text,
      updated_at: text,
      revision: integer,
    },
    key: ['session_id'],
    indexes: [
      { on: ['account_id', 'session_id'], where: "status <> 'erased' AND replay_id IS NULL" },
      // Without a condition, so that the entries can be counted without the rows.
      { on: ['account_id', 'session_id'] },
      { on: ['account_id', 'agent_id', 'session_id'] },
      { on: ['agent_id', 'updated_at'], where: "status <> 'erased'" },
      { on: ['account_id', 'session_id'], where: "status = 'running'" },
      { on: ['account_id', 'session_id'], where: 'turns_completed > 0' },
      { on: ['account_id', 'session_id'], where: 'turns_failed > 0' },
      { on: ['account_id', 'session_id'], where: 'turns_interrupted > 0' },
      { on: ['account_id', 'created_at'] },
      // Erased sessions stay in the table, and their number is not limited. With the status, so that the
      // entries can be counted without the rows.
      { on: ['account_id', 'updated_at', 'status'], where: "status <> 'erased'" },
      { on: ['account_id', 'replay_id', 'session_id'], where: 'replay_id IS NOT NULL' },
      { on: ['replay_of', 'session_id'], where: "replay_of IS NOT NULL AND status <> 'erased'" },
      { on: ['fork_of', 'session_id'], where: "fork_of IS NOT NULL AND status <> 'erased'" },
    ],
  }),

  /** An index of sessions by label. The labels themselves are in `sessions`. */
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
      /** Revision of the agent's stream with which the turn runs. */
      agent_revision: integer,
      output: orNull(text),
      /** The reasoning before the answer, where the provider sent it. */
      reasoning: orNull(text),
      model: text,
      tool_used: text,
      /** Names of the functions offered to the model. */
      offered: json<string[]>(),
      tool_calls: json<Omit<ToolCalledData, 'turn'>[]>(),
      tokens: orNull(json<Tokens>()),
      /** Finish reason from the provider, for a completed turn. */
      finish_reason: orNull(text),
      /** Code and message of a failed turn. For an interrupted turn, the code is the reason. */
      error: orNull(json<{ code: string; message: string }>()),
      /** How much of the session the model sees; null for old turns that did not record it. */
      context: orNull(json<TurnContext>()),
      started_at: text,
      ended_at: orNull(text),
      /** The API key that started the run, or `system`. */
      key_id: text,
      /** The instance that runs the turn, and the turn's deadline. */
      owner: text,
      deadline: text,
      /** Position of the event that ended the turn. Turns are indexed in this order. */
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
   * The words of ended turns, as tokens separated by spaces; a turn without words has a row, too. The
   * indexer fills this table from the rows of `turns`; no projection writes it.
   */
  turn_words: table({
    columns: { session_id: text, turn: integer, words: text, revision: integer },
    key: ['session_id', 'turn'],
    longRows: true,
  }),
};

/** Progress of `turn_words`, which contains every turn that ended up to this position. */
export const INDEXED = table({
  columns: { only_row: integer, position: word<Position>() },
  key: ['only_row'],
});
