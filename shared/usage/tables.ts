import { integer, table, text, word } from '../readModels/table.ts';

/**
 * What model calls took, summed up: an event adds to a row and remembers nothing of itself. It does so
 * once, since the row of its stream, which changes in the same transaction, knows what it has seen. No
 * text of anybody: it outlives the erasure of its sessions, and goes with its account.
 */
export const USAGE_TABLES = {
  usage: table({
    columns: {
      account_id: text,
      /** UTC, `2026-11-20`: of the end of the turn, or of the summary. */
      day: text,
      agent_id: text,
      /** The id in the registry of the one that answered, or that was asked. */
      model: text,
      /** Whose run it was. */
      key_id: text,
      kind: word<'run' | 'replay'>(),
      /** Why turns failed or were interrupted; empty of others. */
      code: text,
      completed: integer,
      failed: integer,
      interrupted: integer,
      prompt_tokens: integer,
      completion_tokens: integer,
      total_tokens: integer,
      model_calls: integer,
      tool_calls: integer,
    },
    key: ['account_id', 'day', 'agent_id', 'model', 'key_id', 'kind', 'code'],
    rewritten: true,
    summed: true,
  }),
};
