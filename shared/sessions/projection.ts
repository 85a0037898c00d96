import { descriptionFromEvent, NO_DESCRIPTION, type Description } from './description.ts';
import type { SessionEvent, SessionStartedData } from './events.ts';
import type { EventMetadata, RecordedEvent } from '../eventlog/event.ts';
import { streamId } from '../eventlog/streams.ts';
import {
  requireAbsent,
  requirePresent,
  type Addition,
  type Difference,
  type Removal,
  type RowChange,
} from '../projections/change.ts';
import type { RowsOf } from '../readModels/table.ts';
import type { SESSION_TABLES } from './tables.ts';
import { projectTurn } from './turns/projection.ts';
import { usageOfCompaction, usageOfTurn } from '../usage/projection.ts';
import { REQUEST_LIMITS } from '../requests/limits.ts';
import { labelToken } from './labelToken.ts';
import { NO_OUTCOMES, type OutcomeCounts } from './turns/outcomes.ts';

type Rows = RowsOf<typeof SESSION_TABLES>;
type SessionRow = Rows['sessions'];
type Change = RowChange<Rows> | Removal<'usage'> | Addition | Difference;

type TurnEnd = Extract<SessionEvent, { type: keyof typeof OUTCOME_COLUMNS }>;

const OUTCOME_COLUMNS = {
  'session.turn_completed.v1': 'turns_completed',
  'session.turn_failed.v1': 'turns_failed',
  'session.turn_interrupted.v1': 'turns_interrupted',
} as const;

/** The row of a session that has just begun. */
export const newSessionRow = (
  session_id: string,
  { account_id, recorded_at }: Pick<EventMetadata, 'account_id' | 'recorded_at'>,
  { agent_id, forked_from, replay }: SessionStartedData,
): SessionRow => ({
  session_id,
  agent_id,
  account_id,
  status: 'idle',
  turns: forked_from?.turn ?? 0,
  ...NO_OUTCOMES,
  ...NO_DESCRIPTION,
  forked_from: forked_from ?? null,
  fork_of: forked_from?.session_id ?? null,
  replay_id: replay?.replay_id ?? null,
  replay_of: replay?.session_id ?? null,
  created_at: recorded_at,
  updated_at: recorded_at,
  revision: 0,
});

/** The count that the end of a turn changes. */
function withOutcome(row: OutcomeCounts, { type }: TurnEnd): Partial<OutcomeCounts> {
  const column = OUTCOME_COLUMNS[type];
  return { [column]: row[column] + 1 };
}

const isIn = (labels: Description['labels'], [name, value]: [string, string]): boolean =>
  Object.hasOwn(labels, name) && labels[name] === value;

/** The changes of `session_labels` by the event: only labels that differ are written. */
function relabel({ stream, revision }: RecordedEvent, after: Description['labels']): Difference {
  const session_id = streamId(stream);
  return {
    table: 'session_labels',
    rows: Math.max(REQUEST_LIMITS.description.labels, Object.keys(after).length),
    difference: (find) => {
      const { account_id, labels: before } = requirePresent(
        find('sessions', [session_id]),
        'session',
      );
      const token = ([name, value]: [string, string]): string =>
        labelToken(account_id, name, value);
      const removed = Object.entries(before).filter((label) => !isIn(after, label));
      const gained = Object.entries(after).filter((label) => !isIn(before, label));
      return {
        removed: removed.map((label) => [session_id, token(label)]),
        added: gained.map((label) => ({ session_id, token: token(label), account_id, revision })),
      };
    },
  };
}

/**
 * Maps an event of a session to changes of `sessions`, `session_labels`, `turns` and `usage`. Every
 * event updates the session's row.
 */
export function projectSession(recorded: RecordedEvent, event: SessionEvent): Change[] {
  const session_id = streamId(recorded.stream);
  const { revision } = recorded;
  const { account_id, recorded_at } = recorded.metadata;
  const session = (change: (row: SessionRow | undefined) => SessionRow): Change => ({
    table: 'sessions',
    key: [session_id],
    change,
  });
  const follow = (patch: (row: SessionRow) => Partial<SessionRow>): Change =>
    session((before) => {
      const row = requirePresent(before, 'session');
      return { ...row, ...patch(row), updated_at: recorded_at, revision };
    });
  switch (event.type) {
    case 'session.started.v1':
      return [
        session((row) => {
          requireAbsent(row, 'session');
          return { ...newSessionRow(session_id, recorded.metadata, event.data), revision };
        }),
      ];
    case 'session.turn_started.v1':
      return [
        follow((row) => ({ status: 'running', turns: row.turns + 1 })),
        projectTurn(recorded, event),
      ];
    case 'session.tool_called.v1':
      return [follow(() => ({})), projectTurn(recorded, event)];
    case 'session.turn_completed.v1':
    case 'session.turn_failed.v1':
    case 'session.turn_interrupted.v1':
      return [
        follow((row) => ({ status: 'idle', ...withOutcome(row, event) })),
        projectTurn(recorded, event),
        usageOfTurn(recorded, event),
      ];
    case 'session.compacted.v1':
      return [follow(() => ({})), usageOfCompaction(recorded, event)];
    case 'session.described.v1': {
      const described = descriptionFromEvent(event.data);
      return [follow(() => described), relabel(recorded, described.labels)];
    }
    case 'session.erased.v1':
      return [
        {
          table: 'sessions',
          key: [session_id],
          change: (row) =>
            row && {
              ...row,
              status: 'erased',
              // An erased session is in no list.
              ...NO_OUTCOMES,
              updated_at: recorded_at,
              revision,
            },
        },
        // Removes the usage of an account whose own stream could not record its erasure.
        ...(event.data.reason === 'account'
          ? [{ table: 'usage', owner: account_id } as const]
          : []),
      ];
    default:
      return event satisfies never;
  }
}
