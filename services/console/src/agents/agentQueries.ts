import { queryOptions } from '@tanstack/react-query';
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
