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
  /** For their prices. */
  models: Pick<ChatModels, 'find'>;
}

export interface UsageQuestion {
  /** UTC dates, both included. */
  from: string;
  to: string;
  by: readonly UsageColumn[];
  /** The most entries of the page. */
  limit: number;
  /** Exclusive start: the values of the last entry of the page before. */
  after?: readonly string[];
}

/** What one part of the usage comes to. */
export interface UsageEntry {
  /** What it is told apart by: of the columns that were asked for, in the order of USAGE_COLUMNS. */
  values: string[];
  counts: UsageCounts;
  /** At the prices of now; undefined where no model of it has one. */
  cost: Cost | undefined;
  /** Tokens of models without a price, which the cost leaves out. */
  unpriced_tokens: number;
}

interface Group extends Pick<UsageEntry, 'values' | 'counts'> {
  tokens: Map<string, Tokens>;
}

/** Byte by byte is not needed, only an order that all pages have. */
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

/** The first groups in their order, as many as a page may need; what lies behind them is let go. */
function firstGroups(most: number, after: readonly string[] | undefined) {
  let groups = new Map<string, Group>();
  /** The last group that is kept, once there are too many. */
  let last: readonly string[] | undefined;

  const sorted = (): Group[] =>
    [...groups.values()].toSorted((one, other) => compare(one.values, other.values));

  function trim(): void {
    const kept = sorted().slice(0, most);
    last = kept.at(-1)!.values;
    groups = new Map(kept.map((group) => [group.values.join('\n'), group]));
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
    if (groups.size >= 2 * most) trim();
  }

  return {
    add,
    sorted,
    /** True where nothing of that day or later can come before what is kept. */
    isFullBefore(day: string): boolean {
      if (groups.size >= most) trim();
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
 * A page of what an account's runs took in some days, added up by what is asked for. It gives way to
 * others between slices, and ends with the signal. Errors: `store_unavailable`, the signal's reason.
 */
export async function readUsage(
  { readModels, models }: UsageSource,
  accountId: string,
  { from, to, by, limit, after }: UsageQuestion,
  signal: AbortSignal,
): Promise<PageOf<UsageEntry>> {
  const columns = USAGE_COLUMNS.filter((column) => by.includes(column));
  const byDay = columns[0] === 'day';
  const groups = firstGroups(limit + 1, after);
  const sliceOf = { to, by: [...new Set([...columns, 'model' as const])] };
  const first = byDay && after && after[0]! > from ? after[0]! : from;
  let place: UsageKey | undefined = keyBeforeDay(first);
  while (place) {
    await yieldToEventLoop(accountId);
    signal.throwIfAborted();
    const { sums, next } = await readModels.sumUsage(accountId, {
      ...sliceOf,
      after: place,
      limit: LIMITS.usage.sliceRows,
    });
    for (const sum of sums)
      groups.add(
        columns.map((column) => sum[column]!),
        sum as UsageSum & { model: string },
      );
    place = byDay && next && groups.isFullBefore(next[0]!) ? undefined : next;
  }
  const found = groups.sorted();
  return {
    rows: found.slice(0, limit).map((group) => priced(group, models)),
    more: found.length > limit,
  };
}
