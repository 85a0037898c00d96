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
