import { useQuery } from '@tanstack/react-query';
import { api, pageOf } from '../api/client.ts';

const MOST = 1_000;
const params = { query: { limit: MOST } };

/** Names by their ids, in the order of the API. */
export type Names = ReadonlyMap<string, string>;
const NO_NAMES: Names = new Map();

function useNames(queryKey: readonly string[], read: () => Promise<[id: string, name: string][]>) {
  const queryFn = async (): Promise<Names> => new Map(await read());
  return useQuery({ queryKey, queryFn, staleTime: 60_000, retry: false }).data ?? NO_NAMES;
}

/** The names of the first agents of the account. Empty without the right to read agents. */
export const useAgentNames = (): Names =>
  useNames(['agents', 'names'], async () => {
    const { rows } = await pageOf(api.GET('/v1/agents', { params }));
    return rows.map(({ agent_id, name }) => [agent_id, name]);
  });

/** The names of the keys of the account. Empty for a key that may not list keys. */
export const useKeyNames = (): Names =>
  useNames(['keys', 'names'], async () => {
    const { rows } = await pageOf(api.GET('/v1/keys', { params }));
    return rows.map(({ key_id, name }) => [key_id, name]);
  });
