import type { SessionEvent } from '../sessions/events.ts';
import type { ModelCall } from '../sessions/turns/promptParts.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamId } from '../eventlog/streams.ts';
import { requirePresent, type Addition } from '../projections/change.ts';
import type { RowsOf } from '../readModels/table.ts';
import type { USAGE_TABLES } from './tables.ts';

type UsageRow = RowsOf<typeof USAGE_TABLES>['usage'];

type TurnEnd = Extract<
  SessionEvent,
  {
    type: 'session.turn_completed.v1' | 'session.turn_failed.v1' | 'session.turn_interrupted.v1';
  }
>;
type Compaction = Extract<SessionEvent, { type: 'session.compacted.v1' }>;

/** Length of the date `2026-11-20` in an instant. */
const DAY_LENGTH = 10;

/** A new row with all counts at zero. */
function nothing(
  { stream, metadata: { account_id, key_id, recorded_at } }: RecordedEvent,
  find: Parameters<Addition['amounts']>[0],
  model: string,
): UsageRow {
  const { agent_id, replay_id } = requirePresent(find('sessions', [streamId(stream)]), 'session');
  return {
    account_id,
    day: recorded_at.slice(0, DAY_LENGTH),
    agent_id,
    model,
    key_id,
    kind: replay_id === null ? 'run' : 'replay',
    code: '',
    completed: 0,
    failed: 0,
    interrupted: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
    total_tokens: 0,
    model_calls: 0,
    tool_calls: 0,
  };
}

// Rows are filled in place, here and in addUsage, because copies took an eighth of a rebuild.
function addCalls(row: UsageRow, calls: readonly ModelCall[]): void {
  for (const { tokens } of calls) {
    row.prompt_tokens += tokens.prompt;
    row.completion_tokens += tokens.completion;
    row.total_tokens += tokens.total;
    row.model_calls += 1;
  }
}

function addOutcome(row: UsageRow, event: TurnEnd): void {
  switch (event.type) {
    case 'session.turn_completed.v1':
      row.completed = 1;
      return;
    case 'session.turn_failed.v1':
      row.failed = 1;
      row.code = event.data.code;
      return;
    case 'session.turn_interrupted.v1':
      row.interrupted = 1;
      row.code = event.data.cause ?? event.data.reason;
      return;
    default:
      event satisfies never;
  }
}

/**
 * The usage of an ended turn, on the day of its end and for the key that began it. The model is the
 * one that answered, including a fallback, or the last one that was called in vain. Each turn has
 * only one, because the first model that answers makes all further calls.
 */
export const usageOfTurn = (recorded: RecordedEvent, event: TurnEnd): Addition => ({
  table: 'usage',
  account_id: recorded.metadata.account_id,
  amounts: (find) => {
    const { turn } = event.data;
    const startedTurn = requirePresent(find('turns', [streamId(recorded.stream), turn]), 'turn');
    const calls = event.type === 'session.turn_interrupted.v1' ? [] : event.data.calls;
    const row = nothing(recorded, find, calls.at(-1)?.fallback?.model ?? startedTurn.model);
    row.key_id = startedTurn.key_id;
    row.tool_calls = startedTurn.tool_calls.length;
    addOutcome(row, event);
    addCalls(row, calls);
    return [row];
  },
});

/**
 * The usage of a compaction: its call and no turn. Old compaction events name only the provider's
 * model.
 */
export const usageOfCompaction = (recorded: RecordedEvent, { data }: Compaction): Addition => ({
  table: 'usage',
  account_id: recorded.metadata.account_id,
  amounts: (find) => {
    const { call, model = data.settings.model } = data;
    const row = nothing(recorded, find, call.fallback?.model ?? model);
    addCalls(row, [call]);
    return [row];
  },
});

/**
 * Adds an amount in place to the sum with its key, which it returns. A new sum is a copy of the amount.
 */
export function addUsage(sums: Map<string, UsageRow>, amount: UsageRow): string {
  const { account_id, day, agent_id, model, key_id, kind, code } = amount;
  const id = `${account_id}/${day}/${agent_id}/${model}/${key_id}/${kind}/${code}`;
  const sum = sums.get(id);
  if (!sum) {
    sums.set(id, { ...amount });
    return id;
  }
  sum.completed += amount.completed;
  sum.failed += amount.failed;
  sum.interrupted += amount.interrupted;
  sum.prompt_tokens += amount.prompt_tokens;
  sum.completion_tokens += amount.completion_tokens;
  sum.total_tokens += amount.total_tokens;
  sum.model_calls += amount.model_calls;
  sum.tool_calls += amount.tool_calls;
  return id;
}
