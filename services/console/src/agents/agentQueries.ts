import { queryOptions, useQuery, type Query } from '@tanstack/react-query';
import { api, dataOf, pageOf, rowsQuery, type Schema } from '../api/client.ts';

/** An agent, and the entity tag of the revision that it is at. */
export interface StoredAgent {
  agent: Schema<'AgentDetail'>;
  etag: string;
}

/** All agents, page by page, oldest first. */
export const agentsQuery = rowsQuery(['agents', 'list'], (after) =>
  pageOf(api.GET('/v1/agents', { params: { query: { limit: 200, ...after } } })),
);

export const agentQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', 'one', agentId],
    queryFn: async (): Promise<StoredAgent> => {
      const params = { path: { agentId } };
      const { data, response } = await api.GET('/v1/agents/{agentId}', { params });
      return { agent: data!.data, etag: response.headers.get('etag')! };
    },
  });

/** The revisions of an agent, newest first. */
export const revisionsQuery = (agentId: string) =>
  rowsQuery(['agents', 'revisions', agentId], ({ after }) => {
    const params = { path: { agentId }, query: after ? { after: Number(after) } : {} };
    return pageOf(api.GET('/v1/agents/{agentId}/revisions', { params }));
  });

/** Two revisions of an agent. Throws an `Error` for one that it does not have. */
export const comparisonQuery = (agentId: string, from: number, to: number) =>
  queryOptions({
    queryKey: ['agents', 'revisions', agentId, from, to],
    queryFn: async () => {
      const [before, after] = [from, to].map(async (revision) => {
        const order = 'oldest' as const;
        const query = { order, limit: 1, ...(revision > 0 && { after: revision - 1 }) };
        const params = { path: { agentId }, query };
        const [found] = await dataOf(api.GET('/v1/agents/{agentId}/revisions', { params }));
        if (found?.revision === revision) return found;
        throw new Error(`The agent has no revision ${revision}. Choose one from the list.`);
      });
      return { before: await before!, after: await after! };
    },
  });

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: () => dataOf(api.GET('/v1/models')),
});

export const toolsQuery = queryOptions({
  queryKey: ['tools'],
  queryFn: () => dataOf(api.GET('/v1/tools')),
});

const MOST = 1_000;
const FRESH_MS = 60_000;
const params = { query: { limit: MOST } };

/** Names by their ids, in the order of the API. */
type Names = ReadonlyMap<string, string>;
const NO_NAMES: Names = new Map();

function useNames(queryKey: readonly string[], read: () => Promise<[id: string, name: string][]>) {
  const queryFn = async (): Promise<Names> => new Map(await read());
  // Each row of a list reads the names. The read is not repeated for each of them when it has failed.
  const retryOnMount = ({ state }: Query<Names>) => Date.now() - state.errorUpdatedAt > FRESH_MS;
  const options = { queryKey, queryFn, staleTime: FRESH_MS, retry: false, retryOnMount };
  return useQuery(options).data ?? NO_NAMES;
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
