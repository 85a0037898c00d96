import type { Context } from 'koa';
import {
  formatTurnPosition,
  type TurnOutputPosition,
} from '../../../shared/sessions/turns/turnOutputPosition.ts';
import type { AccountTurn } from '../../../shared/runs/live/liveTurns.ts';
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
import { onResponseClosed } from '../http/connection/clientDisconnect.ts';
import type { RouteContext } from '../context.ts';
import { successEnvelope } from '../http/responses/envelope.ts';
import type { ErrorPresenter } from '../http/errors/errorPresenter.ts';
import type { SseEvent } from '../http/responses/sse.ts';
import { presentToolCall } from './presenter.ts';

/** The start of a turn, as an event. */
export const startedEvent = ({ session_id, turn }: AccountTurn): SseEvent => ({
  event: 'turn.started',
  data: JSON.stringify({ session_id, turn }),
});

const endedEvent = (
  end: RecordedTurnOutcome,
  id: string,
  errors: ErrorPresenter,
  requestId: string,
): SseEvent =>
  'result' in end
    ? { id, event: 'turn.completed', data: JSON.stringify(successEnvelope(end.result)) }
    : { id, event: 'error', data: JSON.stringify(errors.presentRecorded(end.failed, requestId)) };

function eventOf(
  news: TurnUpdate,
  turn: number,
  errors: ErrorPresenter,
  requestId: string,
): SseEvent {
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
      return endedEvent(news, formatTurnPosition(turn, 'end'), errors, requestId);
    default:
      return news satisfies never;
  }
}

/** Takes room for a turn's record, and reads it. Errors: those of readTurn and of the room. */
export async function readTurnRecord(
  api: RouteContext,
  subject: AccountTurn,
  ctx: Context,
): Promise<TurnSnapshot> {
  const room: Permit = await api.responseMemory.acquire(
    subject.account_id,
    LIMITS.http.pageBytes,
    ctx.res,
  );
  try {
    const row = await readTurn(api, subject);
    // A fork shows a turn that it shares as its own.
    return { turn: recordedTurn({ ...row, session_id: subject.session_id }), done: room.release };
  } catch (error) {
    room.release();
    throw error;
  }
}

interface TurnSseOptions {
  subject: AccountTurn;
  after: TurnOutputPosition;
  /** What was seen of the record already. */
  first?: TurnSnapshot | undefined;
  /** How the run ends that this process has begun for the client. */
  ended?: Promise<RecordedTurnOutcome>;
}

/** A turn's events after a place, to its end. Errors: those of followTurn; the connection is cut. */
export async function* turnSse(
  api: RouteContext,
  { subject, after, first, ended }: TurnSseOptions,
  ctx: Context,
  signal: AbortSignal,
): AsyncGenerator<SseEvent> {
  const requestId = ctx.state['request_id'] as string;
  let known = first;
  const readSnapshot = async (): Promise<TurnSnapshot> => {
    const found = known ?? (await readTurnRecord(api, subject, ctx));
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
    yield eventOf(news, subject.turn, api.errors, requestId);
}

/**
 * Takes a place for a stream, which is given back when the client has left or has it all. Errors:
 * `rate_limited`, `overloaded`.
 */
export function acquireStream(
  { openStreams }: RouteContext,
  account_id: string,
  ctx: Context,
): void {
  onResponseClosed(ctx.res, openStreams.acquire({ account_id, bytes: 0 }).release);
}
