import type { ReadModels } from '../../../../shared/ports/readModels.ts';
import type { AgentRow } from '../../../../shared/readModels/tables.ts';

/** Bounds that no test meets. */
export const ALL = { limit: 100_000, bytes: Number.MAX_SAFE_INTEGER };

/** All agents of the account `acct_1`, or of another one. */
export const agentsOf = async (
  readModels: Pick<ReadModels, 'listAgents'>,
  accountId = 'acct_1',
): Promise<AgentRow[]> => (await readModels.listAgents(accountId, ALL)).rows;
