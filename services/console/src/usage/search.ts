import { defined, searchText, type Search } from '../components/searchParams.ts';

/** The groupings of usage, in the words of the API and of the view. */
export const GROUPS = {
  day: 'Day',
  agent: 'Agent',
  model: 'Model',
  key: 'Key',
  code: 'Failure',
} as const;
export type UsageGroup = keyof typeof GROUPS;

/** Ranges that end today, in days; the first one is shown unless an address says otherwise. */
export const RANGES = [30, 7, 90] as const;
const DAY_MS = 86_400_000;
/** Of more days, only those with runs are shown. */
const MOST_DAYS = 400;

/** The part of an address that says what usage is shown; days are UTC dates. */
export interface UsageSearch {
  days?: number;
  from?: string;
  to?: string;
  by?: UsageGroup;
  agent_id?: string;
  model?: string;
  key_id?: string;
  kind?: 'run' | 'replay';
}

const dayIn = (value: unknown): string | undefined => {
  const day = String(value);
  return /^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(Date.parse(day)) ? day : undefined;
};

/** The search of an address, without values that it can't have. */
export const parseUsageSearch = ({ days, from, to, by, kind, ...ids }: Search): UsageSearch =>
  defined({
    days: RANGES.find((each) => each === days),
    from: dayIn(from),
    to: dayIn(to),
    by: (Object.keys(GROUPS) as UsageGroup[]).find((each) => each === by),
    agent_id: searchText(ids['agent_id']),
    model: searchText(ids['model']),
    key_id: searchText(ids['key_id']),
    kind: (['run', 'replay'] as const).find((each) => each === kind),
  });

const formatDay = (ms: number): string => new Date(ms).toISOString().slice(0, 'YYYY-MM-DD'.length);

/** The first and the last day that a search names; `now` is in milliseconds. */
export function daysOf({ days = RANGES[0], from, to }: UsageSearch, now: number) {
  const last = to ?? formatDay(now);
  return { from: from ?? formatDay(Date.parse(last) - (days - 1) * DAY_MS), to: last };
}

/** All days of a range, in order; undefined if there are too many to show each. */
export function eachDay({ from, to }: { from: string; to: string }): string[] | undefined {
  const first = Date.parse(from);
  const count = Math.max(Math.round((Date.parse(to) - first) / DAY_MS) + 1, 0);
  if (count > MOST_DAYS) return undefined;
  return Array.from({ length: count }, (_, at) => formatDay(first + at * DAY_MS));
}
