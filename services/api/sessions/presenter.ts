import type { Static } from 'typebox';
import type { ToolCalledData } from '../../../shared/sessions/events.ts';
import type { RecordedEvent } from '../../../shared/eventlog/event.ts';
import type { ListedSession } from '../../../shared/search/turnIndex.ts';
import type { RecordedTurnEnd } from '../../../shared/sessions/history/sessionAt.ts';
import type { SessionRow, TurnRow } from '../../../shared/readModels/tables.ts';
import type { SessionEvents } from './eventSchemas.ts';
import type {
  EndedAt,
  Session,
  SessionList,
  ToolCall,
  Transcript,
  TurnRequests,
} from './schemas.ts';
import { failureOfRow } from '../../../shared/sessions/turns/turnFailure.ts';
import { requestBody } from '../../../shared/sessions/turns/requestBody.ts';
import type { RebuiltRequest } from '../../../shared/sessions/turns/turnRequests.ts';

export const presentSession = ({
  session_id,
  agent_id,
  status,
  turns,
  title,
  labels,
  replay_id,
  replay_of,
  forked_from,
  created_at,
  updated_at,
  revision,
}: SessionRow): Static<typeof Session> => ({
  session_id,
  agent_id,
  status: status === 'running' ? 'running' : 'idle',
  turn_count: turns,
  title,
  labels,
  ...(replay_id !== null && replay_of !== null && { replay: { replay_id, session_id: replay_of } }),
  ...(forked_from && { forked_from }),
  created_at,
  updated_at,
  revision,
});

/** The end of a turn, which identifies the state of the session then. */
const presentEnd = (
  sessionId: string,
  { session_id, turn, revision, hash }: RecordedTurnEnd,
): Static<typeof EndedAt> => ({
  turn,
  revision,
  hash,
  ...(session_id !== sessionId && { origin_session_id: session_id }),
});

/** A transcript before its turns; with the end of a turn for the session as of that turn. */
export const presentTranscript = (
  row: SessionRow,
  origin_erased: boolean,
  at: RecordedTurnEnd | undefined,
): Static<typeof Transcript> => {
  const { forked_from, ...session } = presentSession(row);
  return {
    ...session,
    ...(forked_from && { forked_from: { ...forked_from, erased: origin_erased } }),
    ...(at && { at: presentEnd(row.session_id, at) }),
    turns: [],
  };
};

/** A session in the list, with the turns that match a word search. */
export const presentListed = ({
  matches,
  ...session
}: ListedSession): Static<typeof SessionList>[number] => ({
  ...presentSession(session),
  ...(matches && { matches }),
});

/** A tool call in a transcript. */
export const presentToolCall = ({
  turn: _turn,
  content: _content,
  offered: _offered,
  extra: _extra,
  reasoning: _reasoning,
  ...call
}: Omit<ToolCalledData, 'turn'> & { turn?: number }): Static<typeof ToolCall> => call;

interface TurnOptions {
  /** True to show the model's reasoning. */
  reasoning?: boolean | undefined;
}

/** A turn in the transcript of a session. */
export const presentTurn = (
  sessionId: string,
  {
    session_id,
    revision: _revision,
    key_id: _key,
    owner: _owner,
    deadline: _deadline,
    end_position: _endPosition,
    offered: _offered,
    reasoning,
    ...turn
  }: TurnRow,
  options: TurnOptions,
): Static<typeof Transcript>['turns'][number] => ({
  ...turn,
  error: failureOfRow(turn),
  tool_calls: turn.tool_calls.map((call) => ({
    ...presentToolCall(call),
    ...(options.reasoning && call.reasoning !== undefined && { reasoning: call.reasoning }),
  })),
  ...(options.reasoning && { reasoning }),
  ...(session_id !== sessionId && { origin_session_id: session_id }),
});

/** A recorded event without its position, which has no meaning outside the store. */
export const presentEvent = ({
  position: _position,
  ...event
}: RecordedEvent): Static<typeof SessionEvents>[number] => event;

export const presentRequest = ({
  number,
  purpose,
  round,
  call,
  request,
  request_sha256,
  matches,
}: RebuiltRequest): Static<typeof TurnRequests>[number] => ({
  call: number,
  purpose,
  round,
  request: { ...requestBody(request) },
  request_sha256,
  recorded_sha256: call.request_sha256,
  matches,
});
