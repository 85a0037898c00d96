import type { Static } from 'typebox';
import type { UsageEntry } from '../../../shared/usage/queries.ts';
import type { UsageColumn } from '../../../shared/usage/tables.ts';
import { isoTime } from '../../../shared/ports/clock.ts';
import { nextDay, QUOTA_NAMES, USED } from '../../../shared/storage/quotaRules.ts';
import type { StorageUse } from '../../../shared/storage/quotas.ts';
import type { StorageUse as StorageUseSchema, Usage } from './schemas.ts';

/** The quotas of an account and what is used of them. */
export function presentStorageUse(use: StorageUse): Static<typeof StorageUseSchema> {
  const quotas = QUOTA_NAMES.map((name) => [
    name,
    { used: USED[name](use), limit: use.quotas[name] || null },
  ]);
  return {
    day: use.day,
    resets_at: isoTime(nextDay(Date.parse(use.day))),
    quotas: Object.fromEntries(quotas) as Static<typeof StorageUseSchema>['quotas'],
  };
}

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
