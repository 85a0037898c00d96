import { TurnlogError } from '../errors.ts';
import type { Page, ReadModels } from '../ports/readModels.ts';
import type { AgentRow } from '../readModels/tables.ts';
import { pageOf, type PageOf } from './page.ts';

/**
 * The account's agent of that id. Errors: `agent_not_found`, the same for an unknown id and for
 * another account's agent.
 */
export async function findOwnAgent(
  readModels: Pick<ReadModels, 'findAgent'>,
  accountId: string,
  agentId: string,
): Promise<AgentRow> {
  const agent = await readModels.findAgent(agentId);
  if (!agent || agent.account_id !== accountId)
    throw new TurnlogError('agent_not_found', 'There is no such agent.');
  return agent;
}

/** The account's agents, oldest first; all of them when no limit is given. */
export async function listAgents(
  readModels: ReadModels,
  accountId: string,
  page: Page,
): Promise<PageOf<AgentRow>> {
  const after = page.after === undefined ? {} : { after: page.after };
  if (page.limit === undefined)
    return { rows: await readModels.listAgents(accountId, after), next: undefined };
  return pageOf(
    page.limit,
    (row) => row.agent_id,
    (limit) => readModels.listAgents(accountId, { ...after, limit }),
  );
}
