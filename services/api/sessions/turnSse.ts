import type { Context } from 'koa';
import type { Static } from 'typebox';
import { originErasedError, sessionErasedError } from '../../../shared/erasure/errors.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import type { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  formatTurnPosition,
  parseTurnPosition,
  type TurnOutputPosition,
} from '../../../shared/sessions/turns/turnOutputPosition.ts';
import type { AccountTurn } from '../../../shared/runs/live/liveTurns.ts';
import {
  followTurn,
  type TurnSnapshot,
  type TurnUpdate,
} from '../../../shared/runs/live/followTurn.ts';
import type { RecordedTurnOutcome } from '../../../shared/sessions/turns/recordedTurn.ts';
import { SLICE_BYTES, yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { jsonSlices } from '../../../shared/lib/slices.ts';
import { readLastEventId } from '../http/requestHeaders.ts';
import { onResponseClosed } from '../http/connection/clientDisconnect.ts';
import type { RouteContext } from '../context.ts';
import { successEnvelope } from '../http/responses/envelope.ts';
import type { ErrorPresenter } from '../http/errors/errorPresenter.ts';
import type { SseEvent } from '../http/responses/sse.ts';
import { presentToolCall } from './presenter.ts';
import { holdSharedResult, memoryOfEnd, readTurnRecord, type TurnRecord } from './turnMemory.ts';
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
const startedEvent = ({ session_id, turn }: AccountTurn): SseEvent => ({
  event: 'turn.started',
  data: JSON.stringify({ session_id, turn } satisfies Static<typeof TurnStarted>),
});

/** An event whose data is not serialized yet. */
interface EventDraft {
  id: string;
  event: string;
  data: object;
}

function draftEnd(
  end: RecordedTurnOutcome,
  id: string,
  errors: ErrorPresenter,
  requestId: string,
): EventDraft {
  if ('result' in end) return { id, event: 'turn.completed', data: successEnvelope(end.result) };
  const data = errors.present(errors.toPublicError(end.failed), requestId);
  return { id, event: 'error', data };
}

function draftUpdate(
  update: TurnUpdate,
  turn: number,
  errors: ErrorPresenter,
  requestId: string,
): EventDraft {
  const recorded = 'recorded' in update && update.recorded ? { recorded: true as const } : {};
  switch (update.type) {
    case 'reasoning':
    case 'text': {
      const { type, text, position } = update;
      const data: Static<typeof OutputDelta> = { round: position.round, text, ...recorded };
      const event = type === 'text' ? 'output.delta' : 'reasoning.delta';
      return { id: formatTurnPosition(turn, position), event, data };
    }
    case 'called': {
      const data: Static<typeof StreamedToolCall> = {
        ...presentToolCall(update.call),
        ...recorded,
      };
      return { id: formatTurnPosition(turn, update.position), event: 'tool.called', data };
    }
    case 'ended':
      return draftEnd(update, formatTurnPosition(turn, 'end'), errors, requestId);
    default:
      return update satisfies never;
  }
}

/** The JSON of a value. Yields to the event loop between slices. */
async function jsonInSlices(account_id: string, value: object): Promise<string> {
  let text = '';
  let yieldAt = SLICE_BYTES;
  for (const slice of jsonSlices(value)) {
    text += slice;
    if (text.length < yieldAt) continue;
    yieldAt = text.length + SLICE_BYTES;
    await yieldToEventLoop(account_id);
  }
  return text;
}

/** The events of parts and results that followers share. */
const sharedEvents = new WeakMap<object, SseEvent | Promise<SseEvent>>();

/** Formats an update, and a part or the result of a live turn once for all of its followers. */
function formatUpdate(
  update: TurnUpdate,
  { account_id, turn }: AccountTurn,
  errors: ErrorPresenter,
  requestId: string,
): SseEvent | Promise<SseEvent> {
  const shared = 'result' in update ? update.result : update;
  const sharedEvent = sharedEvents.get(shared);
  if (sharedEvent) return sharedEvent;
  const draft = draftUpdate(update, turn, errors, requestId);
  const isLong = update.type === 'ended' || update.recorded;
  const event = isLong
    ? jsonInSlices(account_id, draft.data).then((data) => ({ ...draft, data }))
    : { ...draft, data: JSON.stringify(draft.data) };
  sharedEvents.set(shared, event);
  return event;
}

interface TurnSseOptions {
  subject: AccountTurn;
  after: TurnOutputPosition;
  /** True to begin with the event that names the turn. */
  isFromStart?: boolean;
  /** False to leave out the model's reasoning. */
  reasoning: boolean;
  /** The record, where it was read already. Removed when it is used: a generator keeps its arguments. */
  first?: TurnRecord | undefined;
  /** The outcome of the run, where this request has started it, while it is in memory. */
  awaitOwnOutcome?: () => Promise<RecordedTurnOutcome | undefined>;
}

/** Whether an update has texts that may have been erased since they were read. */
const mayBeErased = (update: TurnUpdate): boolean =>
  update.type === 'ended' ? 'result' in update : update.recorded === true;

/**
 * The events of a turn from a position to its end, which is an error once its texts are erased. An error
 * that is thrown cuts the connection.
 */
export async function* turnSse(
  api: RouteContext,
  options: TurnSseOptions,
  ctx: Context,
  signal: AbortSignal,
): AsyncGenerator<SseEvent> {
  const requestId = ctx.state['request_id'] as string;
  const { subject, after, awaitOwnOutcome } = options;
  const { account_id, session_id } = subject;
  const { keys } = api.store;
  const own = sessionStream(session_id);
  /** The latest record, without the turn, which would stay in memory until the connection closes. */
  let record: Omit<TurnRecord, 'turn'> | undefined;
  let isEndUnsent = false;

  async function readSnapshot(): Promise<TurnSnapshot> {
    const { turn, stream, done } = options.first ?? (await readTurnRecord(api, subject, ctx));
    options.first = undefined;
    record = { stream, done };
    return { turn, done: () => void (isEndUnsent || done()) };
  }

  /** Keeps the memory of a large result reserved until its event is sent. */
  async function holdEnd(update: TurnUpdate, event: SseEvent): Promise<void> {
    const bytes = memoryOfEnd(event);
    if (!('result' in update) || bytes <= LIMITS.http.smallAnswerBytes) return;
    if (update.recorded && record) {
      isEndUnsent = true;
      onResponseClosed(ctx.res, record.done);
    } else await holdSharedResult(api, account_id, { result: update.result, bytes }, ctx.res);
  }

  /** Why texts that were read before may not be sent. Usually without waiting. */
  async function erasure(): Promise<TurnlogError | undefined> {
    if (await keys.isErased(own)) return sessionErasedError();
    // The turns of a fork are those of other sessions up to its beginning.
    return record && (await keys.isErased(record.stream)) ? originErasedError() : undefined;
  }

  const following = {
    liveTurns: api.runState.liveTurns,
    mirroredTurns: api.runState.mirroredTurns,
    readSnapshot,
    now: api.clock.now,
    stopping: api.stopping,
    awaitOwnOutcome,
  };
  if (options.isFromStart) yield startedEvent(subject);
  for await (const update of followTurn(following, subject, after, signal)) {
    if (update.type === 'reasoning' && !options.reasoning) continue;
    // Taken out of the list to send it: a variable would keep it in memory until the client reads on.
    const events = [await formatUpdate(update, subject, api.errors, requestId)];
    if (update.type === 'ended') await holdEnd(update, events[0]!);
    const failed = mayBeErased(update) ? await erasure() : undefined;
    if (!failed) yield events.pop()!;
    else {
      yield formatUpdate({ type: 'ended', failed }, subject, api.errors, requestId);
      return;
    }
  }
}

/** Acquires a permit for a stream, which is released when the response is closed. */
export function acquireStream(
  { openStreams }: RouteContext,
  account_id: string,
  ctx: Context,
): void {
  onResponseClosed(ctx.res, openStreams.acquire({ account_id }).release);
}
