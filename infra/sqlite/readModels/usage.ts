import {
  sliceStatements,
  USAGE_COLUMNS,
  type UsageReads,
  type UsageSum,
} from '../../../shared/usage/usageSums.ts';
import type { Follower } from './follower.ts';

/** Sums of the usage of accounts, a slice at a time. */
export const usageQueries = ({ current }: Follower): UsageReads => ({
  sumUsage: async (accountId, { after, to, by, limit }) => {
    const { last, sums } = sliceStatements('usage', by, (number) => `?${number}`);
    const behind = [accountId, to, ...after];
    return current().snapshot(() => {
      const found = current().get(last, ...behind, limit - 1);
      const next = found && USAGE_COLUMNS.map((column) => found[column] as string);
      return {
        sums: current().all(
          sums(next !== undefined),
          ...behind,
          ...(next ?? []),
        ) as unknown as UsageSum[],
        next,
      };
    });
  },
});
