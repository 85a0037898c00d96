import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { UsageRow } from '../readModels/tables.ts';
import { USAGE_COLUMNS, USAGE_COUNTS, type UsageColumn } from './tables.ts';

export type UsageCounts = Pick<UsageRow, (typeof USAGE_COUNTS)[number]>;

/** A row's key within its account: the values of USAGE_COLUMNS. */
export type UsageKey = readonly string[];

/** Which rows to add up, grouped by which columns. */
export interface UsageSlice {
  /** Exclusive start. */
  after: UsageKey;
  /** The last day, inclusive. */
  to: string;
  /** At least one. */
  by: readonly UsageColumn[];
  /** The most rows. */
  limit: number;
}

/** Sums, with the columns that they are grouped by. */
export type UsageSum = UsageCounts & Partial<Pick<UsageRow, UsageColumn>>;

export interface SlicedUsage {
  sums: UsageSum[];
  /** Where the next slice starts; undefined after the last one. */
  next: UsageKey | undefined;
}

/** Queries of usage: a part of the read models port. */
export interface UsageQueries {
  /** Adds up one slice of an account's usage, which has few enough rows to be read at once. */
  sumUsage(accountId: string, slice: UsageSlice): Promise<SlicedUsage>;
}

/** The key before all rows of a day: every row has an agent. */
export const keyBeforeDay = (day: string): UsageKey => [day, '', '', '', '', ''];

const COLUMNS = USAGE_COLUMNS.join(', ');
const KEY = `(${USAGE_COLUMNS.map(() => '?').join(', ')})`;
const SLICE = `FROM {usage} WHERE account_id = ? AND day <= ? AND (${COLUMNS}) > ${KEY}`;
const SUMS = USAGE_COUNTS.map((name) => `CAST(sum(${name}) AS bigint) AS ${name}`).join(', ');

/** The last row of a full slice; none where fewer rows are left. */
const LAST_ROW = `SELECT ${COLUMNS} ${SLICE} ORDER BY ${COLUMNS} LIMIT 1 OFFSET ?`;

type LastRow = Record<UsageColumn, string>;

const keyOfLast = ([last]: LastRow[]): UsageKey | undefined =>
  last && USAGE_COLUMNS.map((column) => last[column]);

export const createUsageQueries = ({ queryTwice }: SqlDatabase): UsageQueries => ({
  async sumUsage(accountId, { after, to, by, limit }) {
    const start = [accountId, to, ...after];
    const groups = by.join(', ');
    const [lastRows, sums] = await queryTwice<LastRow, UsageSum>(
      { sql: LAST_ROW, parameters: [...start, limit - 1] },
      (rows) => {
        const next = keyOfLast(rows);
        return {
          sql: `SELECT ${groups}, ${SUMS} ${SLICE} ${next ? `AND (${COLUMNS}) <= ${KEY}` : ''} GROUP BY ${groups}`,
          parameters: [...start, ...(next ?? [])],
        };
      },
    );
    return { sums, next: keyOfLast(lastRows) };
  },
});
