import { keepPreviousData, useQuery, type UseQueryResult } from '@tanstack/react-query';
import { api, pageOf, type Schema } from '../api/client.ts';
import type { UsageGroup, UsageSearch } from './search.ts';

export type UsageEntry = Schema<'UsageEntry'>;

const PAGE = 1_000;
/** What is read at the most, so that a long list can't stop the page. */
const MOST_PAGES = 5;
const MOST_KEYS = 1_000;
const NO_KEYS: readonly Schema<'ApiKey'>[] = [];

/** What is asked of the API. Without `by` there is one sum. */
export interface UsageQuery extends Omit<UsageSearch, 'days' | 'by' | 'from' | 'to'> {
  from: string;
  to: string;
  by?: UsageGroup;
}

/** Entries of usage, and whether there are more than were read. */
export interface UsageEntries {
  entries: UsageEntry[];
  isCut: boolean;
}

async function readUsage(query: UsageQuery): Promise<UsageEntries> {
  const entries: UsageEntry[] = [];
  let after: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const { rows, next } = await pageOf(
      api.GET('/v1/usage', {
        params: { query: { ...query, limit: PAGE, ...(after && { after }) } },
      }),
    );
    entries.push(...rows);
    after = next;
    if (after === undefined) break;
  }
  return { entries, isCut: after !== undefined };
}

export const useUsage = (query: UsageQuery): UseQueryResult<UsageEntries> =>
  useQuery({
    queryKey: ['usage', query],
    queryFn: () => readUsage(query),
    placeholderData: keepPreviousData,
  });

/** The keys of the account, for their names. Empty for a key that may not list keys. */
export const useKeys = (): readonly Schema<'ApiKey'>[] =>
  useQuery({
    queryKey: ['keys', 'names'],
    queryFn: async () =>
      (await pageOf(api.GET('/v1/keys', { params: { query: { limit: MOST_KEYS } } }))).rows,
    staleTime: 60_000,
    retry: false,
  }).data ?? NO_KEYS;
