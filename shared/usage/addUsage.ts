import type { UsageRow } from '../readModels/tables.ts';

/** Adds an amount in place to the sum with its key. A new sum is a copy of the amount. */
export function addUsage(sums: Map<string, UsageRow>, amount: UsageRow): void {
  const { account_id, day, agent_id, model, key_id, kind, code } = amount;
  const id = `${account_id}/${day}/${agent_id}/${model}/${key_id}/${kind}/${code}`;
  const sum = sums.get(id);
  if (!sum) {
    sums.set(id, { ...amount });
    return;
  }
  sum.completed += amount.completed;
  sum.failed += amount.failed;
  sum.interrupted += amount.interrupted;
  sum.prompt_tokens += amount.prompt_tokens;
  sum.completion_tokens += amount.completion_tokens;
  sum.total_tokens += amount.total_tokens;
  sum.model_calls += amount.model_calls;
  sum.tool_calls += amount.tool_calls;
}
