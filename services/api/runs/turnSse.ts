import type { Context } from 'koa';
import {
  formatTurnPosition,
  type TurnOutputPosition,
} from '../../../shared/sessions/turns/turnOutputPosition.ts';
import type { AccountTurn } from '../../../shared/runs/live/liveTurns.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Permit } from '../../../shared/lib/concurrency/capacity.ts';
import {
  followTurn,
  type TurnSnapshot,
  type TurnUpdate,
} from '../../../shared/runs/live/followTurn.ts';
import {
  recordedTurn,
  type RecordedTurnOutcome,
} from '../../../shared/sessions/turns/recordedTurn.ts';
import { readTurn } from '../../../shared/sessions/turns/turn.ts';
import { whenClosed } from '../http/connection/clientDisconnect.ts';
import type { RouteContext } from '../context.ts';
import { failureEnvelope, successEnvelope } from '../http/responses/envelope.ts';
import { ERROR_ANSWERS } from '../http/errors/errorResponses.ts';
import type { StreamEvent } from '../http/responses/sse.ts';
import { presentToolCall } from '../sessions/presenter.ts';

/** The start of a turn, as an event. */
export const startedEvent = ({ session_id, turn }: AccountTurn): StreamEvent => ({
  event: 'turn.started',
  data: JSON.stringify({ session_id, turn }),
});

/** The envelope of a turn that failed, as it is recorded. */
function recordedFailure({ code, message }: { code: string; message: string }, requestId: string) {
  const known = code in ERROR_ANSWERS ? (code as TurnlogError['code']) : 'internal_error';
  return failureEnvelope(new TurnlogError(known, message), requestId);
}

const endedEvent = (end: RecordedTurnOutcome, id: string, requestId: string): StreamEvent =>
  'result' in end
    ? { id, event: 'turn.completed', data: JSON.stringify(successEnvelope(end.result)) }
    : { id, event: 'error', data: JSON.stringify(recordedFailure(end.failed, requestId)) };

function eventOf(news: TurnUpdate, turn: number, requestId: string): StreamEvent {
  const recorded = 'recorded' in news && news.recorded ? { recorded: true } : {};
  switch (news.type) {
    case 'text': {
      const { text, position } = news;
      const data = JSON.stringify({ round: position.round, text, ...recorded });
      return { id: formatTurnPosition(turn, position), event: 'output.delta', data };
    }
    case 'called': {
      const data = JSON.stringify({ ...presentToolCall(news.call), ...recorded });
      return { id: formatTurnPosition(turn, news.position), event: 'tool.called', data };
    }
    case 'ended':
      return endedEvent(news, formatTurnPosition(turn, 'end'), requestId);
    default:
      return news satisfies never;
  }
}

/** Takes room for a turn's record, and reads it. Errors: those of readTurn and of the room. */
export async function lookAtTurn(
  api: RouteContext,
  subject: AccountTurn,
  ctx: Context,
): Promise<TurnSnapshot> {
  const room: Permit = await api.answers.take(subject.account_id, LIMITS.http.pageBytes, ctx.res);
  try {
    const row = await readTurn(api, subject);
    // A fork shows a turn that it shares as its own.
    return { turn: recordedTurn({ ...row, session_id: subject.session_id }), done: room.release };
  } catch (error) {
    room.release();
    throw error;
  }
}

interface Stream {
  subject: AccountTurn;
  after: TurnOutputPosition;
  /** What was seen of the record already. */
  first?: TurnSnapshot | undefined;
  /** How the run ends that this process has begun for the client. */
  ended?: Promise<RecordedTurnOutcome>;
}

/** A turn's events after a place, to its end. Errors: those of followTurn; the connection is cut. */
export async function* turnEvents(
  api: RouteContext,
  { subject, after, first, ended }: Stream,
  ctx: Context,
  signal: AbortSignal,
): AsyncGenerator<StreamEvent> {
  const requestId = ctx.state['request_id'] as string;
  let known = first;
  const readSnapshot = async (): Promise<TurnSnapshot> => {
    const found = known ?? (await lookAtTurn(api, subject, ctx));
    known = undefined;
    return found;
  };
  const following = {
    liveTurns: api.runState.liveTurns,
    mirroredTurns: api.runState.mirroredTurns,
    readSnapshot,
    now: api.clock.now,
    stopping: api.stopping,
    ...(ended && { awaitOwnOutcome: () => ended }),
  };
  for await (const news of followTurn(following, subject, after, signal))
    yield eventOf(news, subject.turn, requestId);
}

/**
 * Takes a place for a stream, which is given back when the client has left or has it all. Errors:
 * `rate_limited`, `overloaded`.
 */
export function claimStream({ streams }: RouteContext, account_id: string, ctx: Context): void {
  whenClosed(ctx.res, streams.acquire({ account_id, bytes: 0 }).release);
}
