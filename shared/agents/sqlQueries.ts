import type { Page, PageOf } from '../readModels/page.ts';
import type { Listing, SqlDatabase } from '../readModels/sqlDatabase.ts';
import type { AgentRow } from '../readModels/tables.ts';

/** Queries of agents: a part of the read models port. */
export interface AgentQueries {
  /** By id alone; the caller checks the account. Finds erased agents, but not deleted ones. */
  findAgent(agentId: string): Promise<AgentRow | undefined>;
  /** Oldest first, without erased agents; with deleted ones on request. */
  listAgents(accountId: string, page: Page & { deleted?: true }): Promise<PageOf<AgentRow>>;
  /** Changes with the account's agents, and is cheap. Clients see it: it reveals nothing about other accounts. */
  agentListVersion(accountId: string): Promise<string>;
}

export const AGENT_LISTING: Listing<'agents'> = {
  table: 'agents',
  key: 'agent_id',
  where: 'account_id = ? AND NOT deleted',
};

export function createAgentQueries({ generation, query, find, page }: SqlDatabase): AgentQueries {
  const listed = page(AGENT_LISTING);
  const withDeleted = page({ ...AGENT_LISTING, where: 'account_id = ? AND NOT erased' });
  const listVersion = query<{ version: string | null }>(
    `SELECT ${generation} || '.' || coalesce((
       SELECT agent_id || '.' || revision || '.' || updated_at FROM {agents} WHERE account_id = ? ORDER BY position DESC LIMIT 1
     ), '') AS version`,
  );
  return {
    findAgent: find('agents', 'WHERE agent_id = ? AND (erased OR NOT deleted)'),
    listAgents: (accountId, { deleted, ...bounds }) =>
      (deleted ? withDeleted : listed)([accountId], bounds),
    agentListVersion: async (accountId) => (await listVersion(accountId))[0]?.version ?? '',
  };
}
