import type {
  InterruptionCause,
  InterruptionReason,
  SessionEvent,
  ToolCalledData,
} from '../events.ts';
import type { RecordedEvent } from '../../eventlog/event.ts';
import { streamId } from '../../eventlog/streams.ts';
import { requireAbsent, requirePresent, type RowChange } from '../../projections/change.ts';
import type { RowsOf } from '../../readModels/table.ts';
import type { SESSION_TABLES } from '../tables.ts';

type Rows = RowsOf<typeof SESSION_TABLES>;
type TurnRow = Rows['turns'];

/** The members of a recorded event, beside its data, that the row of a turn needs. */
export type RecordedPlace = Pick<RecordedEvent, 'stream' | 'revision' | 'position' | 'metadata'>;

/** An event of a turn. */
export type TurnEvent = Extract<SessionEvent, { data: { turn: number } }>;
type LaterEvent = Exclude<TurnEvent, { type: 'session.turn_started.v1' }>;

/** Why a turn was interrupted. */
export type Interruption = InterruptionReason | InterruptionCause;

/** Descriptions of interruptions for clients. */
export const INTERRUPTIONS: Record<Interruption, string> = {
  crash: 'The service stopped while the turn was running.',
  cancelled: 'The turn was cancelled.',
  deadline: 'The turn did not end before its deadline.',
  shutdown: 'The service was shut down while the turn was running.',
};

/**
 * The name of the called function; empty for one that was not offered, which does not count as a
 * used tool. The name in the call is encrypted, except in old events, which have no index.
 */
const offeredTool = (
  { offered }: TurnRow,
  { tool, offered: index }: Pick<ToolCalledData, 'tool' | 'offered'>,
): string => (index === undefined ? offered.find((name) => name === tool) : offered[index]) ?? '';

function patch(row: TurnRow, event: LaterEvent): Partial<TurnRow> {
  switch (event.type) {
    case 'session.tool_called.v1': {
      const { turn: _, ...call } = event.data;
      return {
        tool_used: row.tool_used || offeredTool(row, call),
        tool_calls: [...row.tool_calls, call],
      };
    }
    case 'session.turn_completed.v1': {
      const { output, reasoning = null, model, tool_used, tokens, finish_reason } = event.data;
      return { status: 'completed', output, reasoning, model, tool_used, tokens, finish_reason };
    }
    case 'session.turn_failed.v1': {
      const { code, message, output, tokens } = event.data;
      return {
        status: 'failed',
        output: output ?? null,
        tokens: tokens ?? null,
        error: { code, message },
      };
    }
    case 'session.turn_interrupted.v1': {
      const code = event.data.cause ?? event.data.reason;
      return { status: 'interrupted', error: { code, message: INTERRUPTIONS[code] } };
    }
    default:
      return event satisfies never;
  }
}

/** Applies an event to a turn's row. Only an open turn accepts events. */
export function applyTurnEvent(
  found: TurnRow | undefined,
  recorded: RecordedPlace,
  event: TurnEvent,
): TurnRow {
  const session_id = streamId(recorded.stream);
  const { revision } = recorded;
  const { recorded_at: at, key_id } = recorded.metadata;
  const { turn } = event.data;
  if (event.type === 'session.turn_started.v1') {
    requireAbsent(found, 'turn');
    const { input, agent_revision, model, settings, context, owner, deadline } = event.data;
    return {
      session_id,
      turn,
      status: 'running',
      input,
      agent_revision,
      output: null,
      reasoning: null,
      model,
      tool_used: '',
      offered: (settings.tools ?? []).map((tool) => tool.function.name),
      tool_calls: [],
      tokens: null,
      finish_reason: null,
      error: null,
      context: context ?? null,
      started_at: at,
      ended_at: null,
      key_id,
      owner,
      deadline,
      end_position: null,
      revision,
    };
  }
  const row = requirePresent(found, 'turn');
  if (row.status !== 'running') throw new Error(`turn ${turn} has ended already`);
  return {
    ...row,
    ...patch(row, event),
    ...(event.type !== 'session.tool_called.v1' && {
      ended_at: at,
      end_position: recorded.position,
    }),
    revision,
  };
}

/** Maps an event of a turn to a change of its row. */
export const projectTurn = (recorded: RecordedEvent, event: TurnEvent): RowChange<Rows> => ({
  table: 'turns',
  key: [streamId(recorded.stream), event.data.turn],
  change: (found) => applyTurnEvent(found, recorded, event),
});
