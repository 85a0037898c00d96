import { useQuery } from '@tanstack/react-query';
import { api, pageOf, type Schema } from '../api/client.ts';

const MOST_AGENTS = 1_000;
const NO_AGENTS: readonly Schema<'Agent'>[] = [];

/** The first agents of the account, for their names. Empty without the right to read agents. */
export const useAgents = (): readonly Schema<'Agent'>[] =>
  useQuery({
    queryKey: ['agents', 'names'],
    queryFn: async () =>
      (await pageOf(api.GET('/v1/agents', { params: { query: { limit: MOST_AGENTS } } }))).rows,
    staleTime: 60_000,
    retry: false,
  }).data ?? NO_AGENTS;

/** The name of an agent, or its id where it is not known. */
export const agentName = (agents: readonly Schema<'Agent'>[], id: string): string =>
  agents.find(({ agent_id }) => agent_id === id)?.name ?? id;
