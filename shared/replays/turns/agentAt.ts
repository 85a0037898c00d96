import type { AgentEvent } from '../../agents/events.ts';
import { agentErasedError } from '../../erasure/errors.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readPage } from '../../eventlog/reading/readWhole.ts';
import { agentStream, isIdOf } from '../../eventlog/streams.ts';
import { configurationColumns } from '../../agents/projection.ts';
import { agentNotFoundError } from '../../agents/queries.ts';
import type { AgentRow } from '../../readModels/tables.ts';

/** A revision of an agent and the account that owns the agent. */
interface AgentRevision {
  account_id: string;
  agent_id: string;
  revision: number;
}

/** Reads an agent at a revision from its stream. Works for deleted agents as well. */
export async function readAgentAt(
  source: StreamSource,
  { account_id, agent_id, revision }: AgentRevision,
): Promise<AgentRow> {
  if (!isIdOf('agent', agent_id)) throw agentNotFoundError();
  const page = { direction: 'forwards', from: revision, limit: 1 } as const;
  const [latest] = await readPage(source, agentStream(agent_id), page);
  if (latest?.recorded.metadata.account_id !== account_id) throw agentNotFoundError();
  const { type, data } = latest.event as AgentEvent;
  if (type === 'agent.erased.v1' || latest.recorded.erased) throw agentErasedError();
  const { recorded_at } = latest.recorded.metadata;
  return {
    agent_id,
    account_id,
    ...configurationColumns(data),
    created_at: recorded_at,
    updated_at: recorded_at,
    deleted: false,
    erased: false,
    position: latest.recorded.position,
    revision,
  };
}
