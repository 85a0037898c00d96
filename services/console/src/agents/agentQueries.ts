import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { api, dataOf, pageOf } from '../api/client.ts';

const PAGE = 200;

/** All agents, page by page, oldest first. */
export const agentsQuery = infiniteQueryOptions({
  queryKey: ['agents', 'list'],
  queryFn: ({ pageParam: after }) =>
    pageOf(api.GET('/v1/agents', { params: { query: { limit: PAGE, ...(after && { after }) } } })),
  initialPageParam: '',
  getNextPageParam: ({ next }) => next,
});

/** An agent, and the entity tag of the revision that it is at. */
export const agentQuery = (agentId: string) =>
  queryOptions({
    queryKey: ['agents', 'one', agentId],
    queryFn: async () => {
      const { data, response } = await api.GET('/v1/agents/{agentId}', {
        params: { path: { agentId } },
      });
      return { agent: data!.data, etag: response.headers.get('etag')! };
    },
  });

/** The revisions of an agent, newest first. */
export const revisionsQuery = (agentId: string) =>
  infiniteQueryOptions({
    queryKey: ['agents', 'revisions', agentId],
    queryFn: ({ pageParam: after }) =>
      pageOf(
        api.GET('/v1/agents/{agentId}/revisions', {
          params: { path: { agentId }, query: after === '' ? {} : { after: Number(after) } },
        }),
      ),
    initialPageParam: '',
    getNextPageParam: ({ next }) => next,
  });

/** One revision of an agent. */
export const revisionQuery = (agentId: string, revision: number) =>
  queryOptions({
    queryKey: ['agents', 'revisions', agentId, revision],
    queryFn: async () => {
      const after = revision > 0 && { after: revision - 1 };
      const query = { order: 'oldest', limit: 1, ...after } as const;
      const rows = await dataOf(
        api.GET('/v1/agents/{agentId}/revisions', { params: { path: { agentId }, query } }),
      );
      const found = rows[0];
      if (found?.revision !== revision)
        throw new Error(`The agent has no revision ${revision}. Choose one from the list.`);
      return found;
    },
    staleTime: Infinity,
  });

export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: () => dataOf(api.GET('/v1/models')),
});

export const toolsQuery = queryOptions({
  queryKey: ['tools'],
  queryFn: () => dataOf(api.GET('/v1/tools')),
});
