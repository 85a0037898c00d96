import type { Static } from 'typebox';
import type { ToolCalledData } from '../../../shared/domain/session/events.ts';
import type { RecordedEvent } from '../../../shared/eventlog/event.ts';
import type { ListedSession } from '../../../shared/search/turnIndex.ts';
import type { SessionRow, TurnRow } from '../../../shared/readModels/tables.ts';
import type { SessionEvents } from '../schemas/events.ts';
import type { Session, SessionList, ToolCall, Transcript } from '../schemas/sessions.ts';

export const presentSession = ({
  session_id,
  agent_id,
  status,
  turns,
  title,
  labels,
  created_at,
  updated_at,
}: SessionRow): Static<typeof Session> => ({
  session_id,
  agent_id,
  status: status === 'running' ? 'running' : 'idle',
  turn_count: turns,
  title,
  labels,
  created_at,
  updated_at,
});

/** A session as a list shows it; where words were sought, with the turns that have them. */
export const presentListed = ({
  matches,
  ...session
}: ListedSession): Static<typeof SessionList>[number] => ({
  ...presentSession(session),
  ...(matches && { matches }),
});

/** A tool call as the transcript shows it. */
export const presentToolCall = ({
  turn: _turn,
  content: _content,
  ...call
}: Omit<ToolCalledData, 'turn'> & { turn?: number }): Static<typeof ToolCall> => call;

/** A turn as the transcript shows it. */
export const presentTurn = ({
  session_id: _session,
  revision: _revision,
  owner: _owner,
  deadline: _deadline,
  end_position: _endPosition,
  offered: _offered,
  ...turn
}: TurnRow): Static<typeof Transcript>['turns'][number] => ({
  ...turn,
  tool_calls: turn.tool_calls.map(presentToolCall),
});

/** A recorded event without its position, which means nothing outside the store. */
export const presentEvent = ({
  position: _position,
  ...event
}: RecordedEvent): Static<typeof SessionEvents>[number] => event;
