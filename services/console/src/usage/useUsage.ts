import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, pageOf, type Schema } from '../api/client.ts';
import type { UsageGroup, UsageSearch } from './search.ts';

export type UsageEntry = Schema<'UsageEntry'>;

const PAGE = 1_000;

/** A query of usage. Without `by` there is one sum. */
export interface UsageQuery extends Omit<UsageSearch, 'days' | 'by'> {
  from: string;
  to: string;
  by?: UsageGroup;
}

/** A page of usage, of as many entries as the API gives at once. */
export const useUsage = (query: UsageQuery) =>
  useQuery({
    queryKey: ['usage', query],
    queryFn: () => pageOf(api.GET('/v1/usage', { params: { query: { ...query, limit: PAGE } } })),
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
