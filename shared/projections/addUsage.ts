import type { UsageRow } from '../readModels/tables.ts';

/** Adds an amount to the sum that has its key, without a change to either row. */
export function addUsage(sums: Map<string, UsageRow>, amount: UsageRow): void {
  const { account_id, day, agent_id, model, key_id, kind, code } = amount;
  const id = [account_id, day, agent_id, model, key_id, kind, code].join('/');
  const sum = sums.get(id);
  sums.set(
    id,
    sum
      ? {
          ...amount,
          completed: sum.completed + amount.completed,
          failed: sum.failed + amount.failed,
          interrupted: sum.interrupted + amount.interrupted,
          prompt_tokens: sum.prompt_tokens + amount.prompt_tokens,
          completion_tokens: sum.completion_tokens + amount.completion_tokens,
          total_tokens: sum.total_tokens + amount.total_tokens,
          model_calls: sum.model_calls + amount.model_calls,
          tool_calls: sum.tool_calls + amount.tool_calls,
        }
      : amount,
  );
}
