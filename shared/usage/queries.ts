import type { Tokens } from '../domain/schema.ts';
import { yieldToEventLoop } from '../lib/concurrency/yieldToEventLoop.ts';
import { LIMITS } from '../limits.ts';
import type { ChatModels } from '../ports/chatModel.ts';
import type { PageOf, ReadModels } from '../ports/readModels.ts';
import { keyBeforeDay, type UsageCounts, type UsageKey, type UsageSum } from './sqlQueries.ts';
import { USAGE_COLUMNS, type UsageColumn } from './tables.ts';
import { computeCost, sumCosts, type Cost } from './cost.ts';

interface UsageSource {
  readModels: Pick<ReadModels, 'sumUsage'>;
  /** For prices. */
  models: Pick<ChatModels, 'find'>;
}

export interface UsageQuestion {
  /** UTC dates, both inclusive. */
  from: string;
  to: string;
  by: readonly UsageColumn[];
  /** Only rows with these values. */
  where?: Partial<Record<UsageColumn, string>>;
  /** Maximum entries per page. */
  limit: number;
  /** Exclusive start: the values of the previous page's last entry. */
  after?: readonly string[];
}

/** The usage of one group. */
export interface UsageEntry {
  /** The values that identify the group: the requested columns in the order of USAGE_COLUMNS. */
  values: string[];
  counts: UsageCounts;
  /** At current prices; undefined if none of the models has a price. */
  cost: Cost | undefined;
  /** Tokens of models without a price, which are not part of the cost. */
  unpriced_tokens: number;
}

interface Group extends Pick<UsageEntry, 'values' | 'counts'> {
  tokens: Map<string, Tokens>;
}

/** An order that is the same on all pages. It need not be the order of bytes. */
function compare(one: readonly string[], other: readonly string[]): number {
  const index = one.findIndex((value, at) => value !== other[at]);
  if (index === -1) return 0;
  return one[index]! < other[index]! ? -1 : 1;
}

const plus = <Counts extends object>(one: Counts, other: Counts): Counts =>
  Object.fromEntries(
    Object.entries(one).map(([name, count]) => [
      name,
      (count as number) + (other[name as keyof Counts] as number),
    ]),
  ) as Counts;

/** Keeps the first groups in order, as many as a page needs, and drops the others. */
function firstGroups(limit: number, after: readonly string[] | undefined) {
  let groups = new Map<string, Group>();
  /** The last kept group, once others were dropped. */
  let last: readonly string[] | undefined;

  const sorted = (): Group[] =>
    [...groups.values()].toSorted((one, other) => compare(one.values, other.values));

  function trim(): void {
    const remaining = sorted().slice(0, limit);
    last = remaining.at(-1)!.values;
    groups = new Map(remaining.map((group) => [group.values.join('\n'), group]));
  }

  function add(values: string[], { model, ...sum }: UsageSum & { model: string }): void {
    if (after && compare(values, after) <= 0) return;
    if (last && compare(values, last) > 0) return;
    const { prompt_tokens, completion_tokens, total_tokens } = sum;
    const tokens = { prompt: prompt_tokens, completion: completion_tokens, total: total_tokens };
    const counts = countsOf(sum);
    const id = values.join('\n');
    const group = groups.get(id);
    if (!group) groups.set(id, { values, counts, tokens: new Map([[model, tokens]]) });
    else {
      group.counts = plus(group.counts, counts);
      const before = group.tokens.get(model);
      group.tokens.set(model, before ? plus(before, tokens) : tokens);
    }
    if (groups.size >= 2 * limit) trim();
  }

  return {
    add,
    sorted,
    /** True if no group of this day or a later one can precede the kept groups. */
    isFullBefore(day: string): boolean {
      if (groups.size >= limit) trim();
      return last !== undefined && last[0]! < day;
    },
  };
}

function countsOf({
  day: _day,
  agent_id: _agent,
  model: _model,
  key_id: _key,
  kind: _kind,
  code: _code,
  ...counts
}: UsageSum): UsageCounts {
  return counts;
}

function priced({ values, counts, tokens }: Group, models: UsageSource['models']): UsageEntry {
  const parts = [...tokens].map(([model, used]) => ({
    used,
    cost: computeCost(models.find(model), used),
  }));
  return {
    values,
    counts,
    cost: sumCosts(parts.flatMap(({ cost }) => cost ?? [])),
    unpriced_tokens: parts.reduce((sum, { used, cost }) => sum + (cost ? 0 : used.total), 0),
  };
}

/**
 * Reads a page of an account's usage in a range of days, grouped by the requested columns. Yields
 * to other work between slices. Errors: `store_unavailable`, the abort reason.
 */
export async function readUsage(
  { readModels, models }: UsageSource,
  accountId: string,
  { from, to, by, where = {}, limit, after }: UsageQuestion,
  signal: AbortSignal,
): Promise<PageOf<UsageEntry>> {
  const columns = USAGE_COLUMNS.filter((column) => by.includes(column));
  const byDay = columns[0] === 'day';
  const groups = firstGroups(limit + 1, after);
  const filteredColumns = USAGE_COLUMNS.filter((column) => where[column] !== undefined);
  const sliceOf = { to, by: [...new Set([...columns, ...filteredColumns, 'model' as const])] };
  const first = byDay && after && after[0]! > from ? after[0]! : from;
  let position: UsageKey | undefined = keyBeforeDay(first);
  while (position) {
    await yieldToEventLoop(accountId);
    signal.throwIfAborted();
    const { sums, next } = await readModels.sumUsage(accountId, {
      ...sliceOf,
      after: position,
      limit: LIMITS.usage.sliceRows,
    });
    for (const sum of sums)
      if (filteredColumns.every((column) => sum[column] === where[column]))
        groups.add(
          columns.map((column) => sum[column]!),
          sum as UsageSum & { model: string },
        );
    position = byDay && next && groups.isFullBefore(next[0]!) ? undefined : next;
  }
  const sorted = groups.sorted();
  return {
    rows: sorted.slice(0, limit).map((group) => priced(group, models)),
    more: sorted.length > limit,
  };
}
