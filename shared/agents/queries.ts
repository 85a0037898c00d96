import { agentErasedError } from '../erasure/errors.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { AgentRow } from '../readModels/tables.ts';

/** The same where there is none, where it is another account's, and where it was deleted. */
export const agentNotFoundError = (): TurnlogError =>
  new TurnlogError('agent_not_found', 'There is no such agent.');

/**
 * The account's agent of that id. Errors: `agent_not_found`, the same for an unknown id and for
 * another account's agent; `agent_erased`.
 */
export async function findOwnAgent(
  readModels: Pick<ReadModels, 'findAgent'>,
  accountId: string,
  agentId: string,
): Promise<AgentRow> {
  const agent = await readModels.findAgent(agentId);
  if (!agent || agent.account_id !== accountId) throw agentNotFoundError();
  if (agent.erased) throw agentErasedError();
  return agent;
}
