import {
  sliceStatements,
  USAGE_COLUMNS,
  type UsageColumn,
  type UsageReads,
  type UsageSum,
} from '../../../shared/usage/usageSums.ts';
import type { createReader } from './reader.ts';
import { liveSchema, VERSION } from './version.ts';

const ROWS = `${liveSchema(VERSION)}.usage`;

/** Sums of the usage of accounts, a slice at a time. */
export const usageQueries = ({ rows }: ReturnType<typeof createReader>): UsageReads => ({
  sumUsage: async (accountId, { after, to, by, limit }) => {
    const { last, sums } = sliceStatements(ROWS, by, (number) => `$${number}`);
    const behind = [accountId, to, ...after];
    const [found] = await rows<Record<UsageColumn, string>>(last, [...behind, limit - 1]);
    const next = found && USAGE_COLUMNS.map((column) => found[column]);
    return {
      sums: await rows<UsageSum>(sums(next !== undefined), [...behind, ...(next ?? [])]),
      next,
    };
  },
});
