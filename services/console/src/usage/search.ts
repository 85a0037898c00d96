/** What usage is grouped by, in the words of the API. */
export const GROUPS = ['day', 'agent', 'model', 'key', 'code'] as const;
export type UsageGroup = (typeof GROUPS)[number];

/** Ranges that end today, in days. */
export const RANGES = [7, 30, 90] as const;
const DEFAULT_RANGE = 30;
const KINDS = ['run', 'replay'] as const;
const DAY = /^\d{4}-\d{2}-\d{2}$/;
const DAY_MS = 86_400_000;
/** More days than these are shown without those that have no runs. */
const MOST_DAYS = 400;

/** The part of an address that says what usage is shown; days are UTC dates. */
export interface UsageSearch {
  days?: (typeof RANGES)[number];
  from?: string;
  to?: string;
  by?: Exclude<UsageGroup, 'day'>;
  agent_id?: string;
  model?: string;
  key_id?: string;
  kind?: (typeof KINDS)[number];
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'number' || (typeof value === 'string' && value !== '')
    ? String(value)
    : undefined;

const dayOf = (value: unknown): string | undefined =>
  typeof value === 'string' && DAY.test(value) && !Number.isNaN(Date.parse(value))
    ? value
    : undefined;

/** The search of an address, without values that it can't have. */
export function parseUsageSearch(search: Readonly<Record<string, unknown>>): UsageSearch {
  const by = GROUPS.find((group) => group === search['by']);
  const members = {
    days: RANGES.find((days) => days === search['days']),
    from: dayOf(search['from']),
    to: dayOf(search['to']),
    by: by === 'day' ? undefined : by,
    agent_id: textOf(search['agent_id']),
    model: textOf(search['model']),
    key_id: textOf(search['key_id']),
    kind: KINDS.find((kind) => kind === search['kind']),
  };
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

const formatDay = (ms: number): string => new Date(ms).toISOString().slice(0, 'YYYY-MM-DD'.length);

/** The first and the last day that a search names; `now` is in milliseconds. */
export function daysOf({ days, from, to }: UsageSearch, now: number): { from: string; to: string } {
  const last = to ?? formatDay(now);
  const range = days ?? DEFAULT_RANGE;
  return { from: from ?? formatDay(Date.parse(last) - (range - 1) * DAY_MS), to: last };
}

/** All days of a range, in order; undefined if there are too many to show each. */
export function eachDay({ from, to }: { from: string; to: string }): string[] | undefined {
  const count = Math.round((Date.parse(to) - Date.parse(from)) / DAY_MS) + 1;
  if (count > MOST_DAYS) return undefined;
  return Array.from({ length: Math.max(count, 0) }, (_, at) =>
    formatDay(Date.parse(from) + at * DAY_MS),
  );
}
