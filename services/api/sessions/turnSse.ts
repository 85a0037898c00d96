import type { Context } from 'koa';
import type { Static } from 'typebox';
import {
  formatTurnPosition,
  parseTurnPosition,
  type TurnOutputPosition,
} from '../../../shared/sessions/turns/turnOutputPosition.ts';
import type { AccountTurn } from '../../../shared/runs/live/liveTurns.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { waitToBegin } from '../../../shared/lib/concurrency/pacedSteps.ts';
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
import { readLastEventId } from '../http/requestHeaders.ts';
import { onResponseClosed } from '../http/connection/clientDisconnect.ts';
import type { RouteContext } from '../context.ts';
import { successEnvelope } from '../http/responses/envelope.ts';
import type { ErrorPresenter } from '../http/errors/errorPresenter.ts';
import type { SseEvent } from '../http/responses/sse.ts';
import { presentToolCall } from './presenter.ts';
import type { OutputDelta, StreamedToolCall, TurnStarted } from './turnStreamSchemas.ts';

const RULE = 'must be the id of an event of this turn, as its stream gave it';

/**
 * The last position that the client has received. For a turn that is not known yet, only the form
 * of the id is checked.
 */
export const readTurnPosition = (
  ctx: Context,
  turn?: number,
): TurnOutputPosition | 'end' | undefined =>
  readLastEventId(ctx, (id) => parseTurnPosition(id, turn), RULE);

/** The event for the start of a turn. */
export const startedEvent = ({ session_id, turn }: AccountTurn): SseEvent => ({
  event: 'turn.started',
  data: JSON.stringify({ session_id, turn } satisfies Static<typeof TurnStarted>),
});

function endedEvent(
  end: RecordedTurnOutcome,
  id: string,
  errors: ErrorPresenter,
  requestId: string,
): SseEvent {
  if ('result' in end)
    return { id, event: 'turn.completed', data: JSON.stringify(successEnvelope(end.result)) };
  const failure = errors.present(errors.toPublicError(end.failed), requestId);
  return { id, event: 'error', data: JSON.stringify(failure) };
}

function formatUpdate(
  update: TurnUpdate,
  turn: number,
  errors: ErrorPresenter,
  requestId: string,
): SseEvent {
  const recorded = 'recorded' in update && update.recorded ? { recorded: true as const } : {};
  switch (update.type) {
    case 'reasoning':
    case 'text': {
      const { type, text, position } = update;
      const delta: Static<typeof OutputDelta> = { round: position.round, text, ...recorded };
      const data = JSON.stringify(delta);
      const event = type === 'text' ? 'output.delta' : 'reasoning.delta';
      return { id: formatTurnPosition(turn, position), event, data };
    }
    case 'called': {
      const call: Static<typeof StreamedToolCall> = {
        ...presentToolCall(update.call),
        ...recorded,
      };
      const data = JSON.stringify(call);
      return { id: formatTurnPosition(turn, update.position), event: 'tool.called', data };
    }
    case 'ended':
      return endedEvent(update, formatTurnPosition(turn, 'end'), errors, requestId);
    default:
      return update satisfies never;
  }
}

/** The events of parts that followers share. */
const liveEvents = new WeakMap<TurnUpdate, SseEvent>();

/** Like formatUpdate, but formats a part once for all followers of a live turn. */
function formatOnce(
  ...[update, turn, errors, requestId]: Parameters<typeof formatUpdate>
): SseEvent {
  const known = liveEvents.get(update);
  if (known) return known;
  const event = formatUpdate(update, turn, errors, requestId);
  if (update.type !== 'ended' && !update.recorded) liveEvents.set(update, event);
  return event;
}

/** Reads the record of a turn after acquiring memory for it. */
export async function readTurnRecord(
  api: RouteContext,
  subject: AccountTurn,
  ctx: Context,
): Promise<TurnSnapshot> {
  const permit: Permit = await api.responseMemory.acquire(
    subject.account_id,
    LIMITS.http.pageBytes,
    ctx.res,
  );
  try {
    // Followers of a live turn read its record all at once, when it has ended.
    await waitToBegin(subject.account_id);
    const row = await readTurn(api, subject);
    // In a fork, a shared turn appears as the fork's own.
    return { turn: recordedTurn({ ...row, session_id: subject.session_id }), done: permit.release };
  } catch (error) {
    permit.release();
    throw error;
  }
}

interface TurnSseOptions {
  subject: AccountTurn;
  after: TurnOutputPosition;
  /** The record, where it was read already. */
  first?: TurnSnapshot | undefined;
  /** The outcome of the run, where this request has started it. */
  ended?: Promise<RecordedTurnOutcome>;
}

/** The events of a turn from a position to its end. An error cuts the connection. */
export async function* turnSse(
  api: RouteContext,
  { subject, after, first, ended }: TurnSseOptions,
  ctx: Context,
  signal: AbortSignal,
): AsyncGenerator<SseEvent> {
  const requestId = ctx.state['request_id'] as string;
  let unusedSnapshot = first;
  const readSnapshot = async (): Promise<TurnSnapshot> => {
    const snapshot = unusedSnapshot ?? (await readTurnRecord(api, subject, ctx));
    unusedSnapshot = undefined;
    return snapshot;
  };
  const following = {
    liveTurns: api.runState.liveTurns,
    mirroredTurns: api.runState.mirroredTurns,
    readSnapshot,
    now: api.clock.now,
    stopping: api.stopping,
    ...(ended && { awaitOwnOutcome: () => ended }),
  };
  for await (const update of followTurn(following, subject, after, signal))
    yield formatOnce(update, subject.turn, api.errors, requestId);
}

/** Acquires a permit for a stream, which is released when the response is closed. */
export function acquireStream(
  { openStreams }: RouteContext,
  account_id: string,
  ctx: Context,
): void {
  onResponseClosed(ctx.res, openStreams.acquire({ account_id, bytes: 0 }).release);
}
