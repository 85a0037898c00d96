import type { UsageRow } from '../readModels/tables.ts';

/** By what an account's usage is told apart, in the order of its rows: a part of their key. */
export const USAGE_COLUMNS = ['day', 'agent_id', 'model', 'key_id', 'kind', 'code'] as const;
export type UsageColumn = (typeof USAGE_COLUMNS)[number];

/** What is added up. */
const COUNTS = [
  'completed',
  'failed',
  'interrupted',
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'model_calls',
  'tool_calls',
] as const;
export type UsageCounts = Pick<UsageRow, (typeof COUNTS)[number]>;

/** A place among the rows of an account: the texts of USAGE_COLUMNS. */
export type UsagePlace = readonly string[];

/** Which rows to add up, and by what: a slice of all that are asked for. */
export interface UsageSlice {
  /** Exclusive. */
  after: UsagePlace;
  /** The last day, inclusive. */
  to: string;
  /** One at least. */
  by: readonly UsageColumn[];
  /** The most rows. */
  limit: number;
}

/** A sum, with the columns that it is told apart by. */
export type UsageSum = UsageCounts & Partial<Pick<UsageRow, UsageColumn>>;

export interface SlicedUsage {
  sums: UsageSum[];
  /** Where the next slice begins; undefined where there is none. */
  next: UsagePlace | undefined;
}

export interface UsageReads {
  /** Sums of a slice of an account's usage: of few enough rows to be read at once. */
  sumUsage(accountId: string, slice: UsageSlice): Promise<SlicedUsage>;
}

interface SliceStatements {
  /** Finds the last row of a full slice; its last parameter is how many rows are before it. */
  last: string;
  /** Adds up all rows behind the beginning, or as far as the last one. */
  sums: (bounded: boolean) => string;
}

/** The place that a day begins behind: every row has an agent. */
export const beginningOf = (day: string): UsagePlace => [day, '', '', '', '', ''];

/**
 * The SQL of a slice, whose parameters are account, last day, and the columns of the place where it
 * begins; then those of its last row. `parameter` writes the one of that number.
 */
export function sliceStatements(
  rows: string,
  by: readonly UsageColumn[],
  parameter: (number: number) => string,
): SliceStatements {
  const columns = USAGE_COLUMNS.join(', ');
  const placeFrom = (first: number): string =>
    `(${USAGE_COLUMNS.map((_column, index) => parameter(first + index)).join(', ')})`;
  const behind = `account_id = ${parameter(1)} AND day <= ${parameter(2)} AND (${columns}) > ${placeFrom(3)}`;
  const counts = COUNTS.map((name) => `CAST(sum(${name}) AS bigint) AS ${name}`);
  return {
    last: `SELECT ${columns} FROM ${rows} WHERE ${behind} ORDER BY ${columns} LIMIT 1 OFFSET ${parameter(9)}`,
    sums: (bounded) =>
      `SELECT ${[...by, ...counts].join(', ')} FROM ${rows} WHERE ${behind} ${bounded ? `AND (${columns}) <= ${placeFrom(9)}` : ''} GROUP BY ${by.join(', ')}`,
  };
}
