import { integer, table, text, word } from '../readModels/table.ts';

/** The columns that an account's usage can be grouped by, in the order of the key. */
export const USAGE_COLUMNS = ['day', 'agent_id', 'model', 'key_id', 'kind', 'code'] as const;
export type UsageColumn = (typeof USAGE_COLUMNS)[number];

/** The columns that are added up. */
export const USAGE_COUNTS = [
  'completed',
  'failed',
  'interrupted',
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'model_calls',
  'tool_calls',
] as const;

/**
 * Sums of what turns and model calls used. Each event is added exactly once, because the row of its
 * stream changes in the same transaction and stores the last applied revision. The sums contain no
 * text. They outlive the erasure of their sessions and are deleted with their account. Part of
 * TABLES.
 */
export const USAGE_TABLES = {
  usage: table({
    columns: {
      account_id: text,
      /** UTC date, `2026-11-20`, on which the turn or the summary ended. */
      day: text,
      agent_id: text,
      /** Registry id of the model that answered, or of the last one called. */
      model: text,
      /** API key of the run. */
      key_id: text,
      kind: word<'run' | 'replay'>(),
      /** Why turns failed or were interrupted; otherwise empty. */
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
    key: ['account_id', ...USAGE_COLUMNS],
    rewritten: true,
    summed: true,
  }),
};
