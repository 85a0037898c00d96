import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, pageOf, type Schema } from '../api/client.ts';
import type { UsageGroup, UsageSearch } from './search.ts';

export type UsageEntry = Schema<'UsageEntry'>;

const PAGE = 1_000;
const MOST_PAGES = 5;

/** What is asked of the API. Without `by` there is one sum. */
export interface UsageQuery extends Omit<UsageSearch, 'days' | 'by'> {
  from: string;
  to: string;
  by?: UsageGroup;
}

/** Entries of usage, and whether there are more than are read. */
export const useUsage = (query: UsageQuery) =>
  useQuery({
    queryKey: ['usage', query],
    queryFn: async () => {
      const entries: UsageEntry[] = [];
      let after: string | undefined;
      for (let page = 0; page < MOST_PAGES && (page === 0 || after); page += 1) {
        const params = { query: { ...query, limit: PAGE, ...(after && { after }) } };
        const { rows, next } = await pageOf(api.GET('/v1/usage', { params }));
        entries.push(...rows);
        after = next;
      }
      return { entries, isCut: after !== undefined };
    },
    placeholderData: keepPreviousData,
  });

const NO_KEYS: readonly Schema<'ApiKey'>[] = [];

/** The keys of the account, for their names. Empty for a key that may not list keys. */
export const useKeys = (): readonly Schema<'ApiKey'>[] =>
  useQuery({
    queryKey: ['keys', 'names'],
    queryFn: async () =>
      (await pageOf(api.GET('/v1/keys', { params: { query: { limit: PAGE } } }))).rows,
    staleTime: 60_000,
    retry: false,
  }).data ?? NO_KEYS;
