import type { Static } from 'typebox';
import type { UsageEntry } from '../../../shared/usage/queries.ts';
import type { UsageColumn } from '../../../shared/usage/tables.ts';
import type { Usage } from './schemas.ts';

/** The usage of an account for one combination of the columns' values. */
export function presentUsage(
  { values, counts, cost, unpriced_tokens }: UsageEntry,
  columns: readonly UsageColumn[],
): Static<typeof Usage>[number] {
  const { completed, failed, interrupted, model_calls, tool_calls } = counts;
  const entries = columns.map((column, index) => [column, values[index] || null]);
  return {
    ...(Object.fromEntries(entries) as object),
    runs: completed + failed + interrupted,
    completed,
    failed,
    interrupted,
    tokens: {
      prompt: counts.prompt_tokens,
      completion: counts.completion_tokens,
      total: counts.total_tokens,
    },
    model_calls,
    tool_calls,
    cost: cost ?? null,
    unpriced_tokens,
  };
}
