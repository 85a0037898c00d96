import type { SqlDatabase } from '../readModels/sqlDatabase.ts';
import { shownOwner } from '../readModels/statements.ts';
import type { UsageRow } from '../readModels/tables.ts';
import { USAGE_COLUMNS, USAGE_COUNTS, type UsageColumn } from './tables.ts';

export type UsageCounts = Pick<UsageRow, (typeof USAGE_COUNTS)[number]>;

/** A row's key within its account: the values of USAGE_COLUMNS. */
export type UsageKey = readonly string[];

/** Rows to add up, and columns to group them by. */
interface UsageSlice {
  /** Exclusive start. */
  after: UsageKey;
  /** The last day, inclusive. */
  to: string;
  /** At least one column. */
  by: readonly UsageColumn[];
  /** Maximum number of rows. */
  limit: number;
}

/** Sums, and the columns by which they are grouped. */
export type UsageSum = UsageCounts & Partial<Pick<UsageRow, UsageColumn>>;

interface SlicedUsage {
  sums: UsageSum[];
  /** Where the next slice starts; undefined after the last one. */
  next: UsageKey | undefined;
}

/** Queries for usage, part of the read models port. */
export interface UsageQueries {
  /** Adds up one slice of an account's usage. A slice is small enough to be read at once. */
  sumUsage(accountId: string, slice: UsageSlice): Promise<SlicedUsage>;
}

/** A key before all rows of a day, because every row has a nonempty agent. */
export const keyBeforeDay = (day: string): UsageKey => [day, '', '', '', '', ''];

const COLUMNS = USAGE_COLUMNS.join(', ');
const KEY = `(${USAGE_COLUMNS.map(() => '?').join(', ')})`;
const IN_SLICE = `day <= ? AND (${COLUMNS}) > ${KEY}`;
const SUMS = USAGE_COUNTS.map((name) => `CAST(sum(${name}) AS bigint) AS ${name}`).join(', ');

type LastRow = Record<UsageColumn, string>;

const keyOfLast = ([last]: LastRow[]): UsageKey | undefined =>
  last && USAGE_COLUMNS.map((column) => last[column]);

export function createUsageQueries(database: SqlDatabase): UsageQueries {
  const slice = `FROM {usage} WHERE account_id = ${shownOwner(database, 'usage')} AND ${IN_SLICE}`;
  /** The last row of a full slice; no row if fewer rows are left. */
  const lastRow = `SELECT ${COLUMNS} ${slice} ORDER BY ${COLUMNS} LIMIT 1 OFFSET ?`;
  return {
    async sumUsage(accountId, { after, to, by, limit }) {
      const start = [accountId, to, ...after];
      const groups = by.join(', ');
      const [lastRows, sums] = await database.queryTwice<LastRow, UsageSum>(
        { sql: lastRow, parameters: [...start, limit - 1] },
        (rows) => {
          const next = keyOfLast(rows);
          return {
            sql: `SELECT ${groups}, ${SUMS} ${slice} ${next ? `AND (${COLUMNS}) <= ${KEY}` : ''} GROUP BY ${groups}`,
            parameters: [...start, ...(next ?? [])],
          };
        },
      );
      return { sums, next: keyOfLast(lastRows) };
    },
  };
}
