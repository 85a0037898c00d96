import type { AgentConfiguration, AgentEvent } from './events.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { streamId } from '../eventlog/streams.ts';
import { requireAbsent, requirePresent, type RowChange } from '../projections/change.ts';
import type { RowsOf } from '../readModels/table.ts';
import type { AGENT_TABLES } from './tables.ts';

type Change = RowChange<RowsOf<typeof AGENT_TABLES>>;

/** The columns of a configuration. */
export const configurationColumns = ({
  name,
  instruction,
  model,
  tool,
  component,
  compaction,
  parameters,
}: AgentConfiguration) => ({
  name,
  instruction,
  model,
  tool: tool ?? null,
  component,
  compaction: compaction ?? false,
  parameters: parameters ?? null,
});

/** The changes of `agents` by an event of an agent's stream. */
export function projectAgent(recorded: RecordedEvent, event: AgentEvent): Change[] {
  const agent_id = streamId(recorded.stream);
  const { revision, position } = recorded;
  const { account_id, recorded_at } = recorded.metadata;
  switch (event.type) {
    case 'agent.created.v1':
      return [
        {
          table: 'agents',
          key: [agent_id],
          change: (row) => {
            requireAbsent(row, 'agent');
            return {
              agent_id,
              account_id,
              ...configurationColumns(event.data),
              created_at: recorded_at,
              updated_at: recorded_at,
              deleted: false,
              erased: false,
              position,
              revision,
            };
          },
        },
      ];
    case 'agent.updated.v1':
    case 'agent.deleted.v1':
      return [
        {
          table: 'agents',
          key: [agent_id],
          change: (row) => ({
            ...requirePresent(row, 'agent'),
            ...configurationColumns(event.data),
            updated_at: recorded_at,
            deleted: event.type === 'agent.deleted.v1',
            position,
            revision,
          }),
        },
      ];
    case 'agent.erased.v1':
      return [
        {
          table: 'agents',
          key: [agent_id],
          change: (row) =>
            row && {
              ...row,
              updated_at: recorded_at,
              deleted: true,
              erased: true,
              position,
              revision,
            },
        },
      ];
    default:
      return event satisfies never;
  }
}
