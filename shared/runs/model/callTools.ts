import { addAbortListener } from 'node:events';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { ToolCalledData } from '../../sessions/events.ts';
import { LIMITS } from '../../limits.ts';
import { KIB } from '../../lib/units.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yieldToEventLoop.ts';
import { elapsedMs } from '../../lib/time/elapsedMs.ts';
import type { ChatAnswer } from '../../ports/chatModel.ts';
import type { ToolCallRequest } from '../../sessions/turns/chat.ts';
import { toolNotRecordedError } from '../../replays/errors.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import type { OpenRun, RunContext } from '../context.ts';
import { recordTurnEvents, type RecordTurnContext } from '../recordTurn.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';

/** Limits the tool calls of a turn, so that the turn remains readable. */
interface ToolAllowance {
  /** Counts calls before they are made. Throws `tool_error` above `LIMITS.run.toolCalls`. */
  countCalls(calls: number): void;
  /**
   * Counts recorded texts. Throws `tool_error` above `LIMITS.run.toolCallBytes`, or without memory
   * for the texts.
   */
  countBytes(...texts: string[]): void;
}

const tooManyCalls = (limit: string): TurnlogError =>
  new TurnlogError('tool_error', `The model called tools too often: ${limit}.`);

/**
 * The allowance of a new turn. `reserveBytes` reserves memory in addition to the prompt for all
 * recorded texts together, and returns false if there is none. Small results need no reservation,
 * so that small tools also work in a process without free capacity.
 */
export function createToolAllowance(reserveBytes: (bytes: number) => boolean): ToolAllowance {
  const { toolCalls, toolCallBytes, toolCallBytesUnheld } = LIMITS.run;
  let calls = 0;
  let bytes = 0;
  return {
    countCalls(more) {
      calls += more;
      if (calls > toolCalls) throw tooManyCalls(`a turn has ${toolCalls} tool calls at most`);
    },
    countBytes(...texts) {
      for (const text of texts) bytes += Buffer.byteLength(text);
      if (bytes > toolCallBytes)
        throw tooManyCalls(`what a turn's tool calls record is ${toolCallBytes} bytes at most`);
      if (bytes <= toolCallBytesUnheld || reserveBytes(bytes)) return;
      throw new TurnlogError(
        'tool_error',
        'There is not enough memory now for the tool results of this turn. Try again later.',
        { retriable: true },
      );
    },
  };
}

export type ToolCallContext = RecordTurnContext & Pick<RunContext, 'catalogue' | 'readModels'>;

interface Round {
  run: OpenRun;
  round: number;
  answer: ChatAnswer;
  allowance: ToolAllowance;
}

type ToolCallRecord = Omit<ToolCalledData, 'round' | 'content' | 'reasoning'>;

/** A started call, and its record once it has ended. */
interface PendingCall {
  result: Promise<ToolCallRecord>;
  settled: ToolCallRecord | undefined;
}

/**
 * Makes the tool calls of an answer concurrently, and records them in the model's order. Calls that
 * have ended meanwhile are recorded together: the read models rewrite the row of the turn, with all of its
 * texts, after each append. At an interruption, ended calls are recorded, unless another process has
 * recorded the end of the turn before. Pending calls are abandoned.
 */
export async function callTools(
  context: ToolCallContext,
  { run, round, answer, allowance }: Round,
  signal: AbortSignal,
): Promise<void> {
  const { tool_calls: calls } = answer;
  allowance.countCalls(calls.length);
  // None is made if one can't be recorded.
  for (const [index, call] of calls.entries()) {
    const texts = textsOf(call, index === 0 ? answer : {});
    requireRecordable(texts);
    allowance.countBytes(...texts);
  }
  const stop = new AbortController();
  const listening = addAbortListener(signal, () => stop.abort(signal.reason));
  const pending: PendingCall[] = [];
  let recorded = 0;
  let recording = false;

  async function start(call: ToolCallRequest): Promise<void> {
    // Calls that resolve immediately would otherwise block the event loop, and the timer of the
    // run's time limit. Parsing long arguments takes milliseconds.
    if (call.function.arguments.length >= LIMITS.tool.pacedArgumentsChars)
      await yieldToEventLoop(run.request.actor.account_id);
    else if (pending.length > 0) await yieldToOthers();
    signal.throwIfAborted();
    pending.push(startCall(context, { run, round }, call, stop.signal));
  }

  /** Records the first of these calls, as many as fit in one append, and returns them. */
  async function recordFirst(ended: readonly ToolCallRecord[]): Promise<readonly ToolCallRecord[]> {
    recording = true;
    const toolCalls = fittingAppend(
      ended.map((call, index) => ({
        ...call,
        ...(recorded + index === 0 && textsBeside(answer)),
        round,
      })),
    );
    const write = await recordTurnEvents(
      context,
      run,
      toolCalls.map((call) => ({ type: 'record_tool_call', run: run.state, call })),
    );
    // A client that receives the calls from a stream may read the session next.
    context.readModels.showLater?.(write);
    recorded += toolCalls.length;
    recording = false;
    for (const toolCall of toolCalls) {
      run.turn.tool_calls.push(toolCall);
      run.publisher.publishToolCall(toolCall);
    }
    const missing = toolCalls.find(({ replayed }) => replayed === 'missing');
    if (missing && run.request.replay?.failsOnMissingCall) throw toolNotRecordedError(missing.tool);
    return toolCalls;
  }

  /** The calls that have ended, up to the first one that has not. */
  function endedCalls(): ToolCallRecord[] {
    const unrecorded = pending.slice(recorded).map(({ settled }) => settled);
    const end = unrecorded.indexOf(undefined);
    return unrecorded.slice(0, end < 0 ? unrecorded.length : end).flatMap((call) => call ?? []);
  }

  try {
    while (recorded < calls.length) {
      while (pending.length < Math.min(calls.length, recorded + LIMITS.run.parallelToolCalls))
        await start(calls[pending.length]!);
      await pending[recorded]!.result;
      for (const { result } of await recordFirst(endedCalls())) allowance.countBytes(result);
    }
  } catch (error) {
    stop.abort(error);
    const unrecorded = recording
      ? []
      : pending.slice(recorded).flatMap(({ settled }) => settled ?? []);
    // The run fails with the first error.
    await recordAll(unrecorded, recordFirst).catch(() => undefined);
    throw error;
  } finally {
    listening[Symbol.dispose]();
  }
}

/** The texts of an answer beside its calls, which are recorded with the first call. */
const textsBeside = ({ content, reasoning }: ChatAnswer) => ({
  ...(content && { content }),
  ...(reasoning && { reasoning }),
});

/** UTF-8 bytes of the texts of an append of several calls. Encrypted, they take a third more. */
const APPEND_BYTES = 512 * KIB;
/** The same of one call, which is never made if it could not be recorded. */
const CALL_BYTES = 740 * KIB;

const bytesOf = (call: object): number =>
  Object.values(call).reduce<number>(
    (sum, value: unknown) => sum + (typeof value === 'string' ? Buffer.byteLength(value) : 0),
    0,
  );

/** The recorded texts of a call, and of the answer beside its first call. */
const textsOf = (
  { id, function: { name, arguments: args }, extra = '' }: ToolCallRequest,
  { content, reasoning }: Partial<ChatAnswer>,
): string[] => [id, name, args, extra, content ?? '', reasoning ?? ''];

/** Throws `event_invalid` for a call that is too long to be recorded with the longest result. */
function requireRecordable(texts: readonly string[]): void {
  const bytes = bytesOf(texts) + LIMITS.tool.resultBytes;
  if (bytes > CALL_BYTES)
    throw new TurnlogError('event_invalid', 'A tool call is too long for an event.');
}

/** The first of these calls, at least one, whose texts together fit in an append. */
function fittingAppend<Call extends object>(calls: readonly Call[]): readonly Call[] {
  let bytes = 0;
  const end = calls.findIndex((call, index) => {
    bytes += bytesOf(call);
    return index > 0 && bytes > APPEND_BYTES;
  });
  return end < 0 ? calls : calls.slice(0, end);
}

async function recordAll(
  calls: readonly ToolCallRecord[],
  recordFirst: (calls: readonly ToolCallRecord[]) => Promise<readonly unknown[]>,
): Promise<void> {
  let remaining = calls;
  while (remaining.length > 0) remaining = remaining.slice((await recordFirst(remaining)).length);
}

type CallPlace = Pick<Round, 'run' | 'round'>;

function startCall(
  context: ToolCallContext,
  place: CallPlace,
  call: ToolCallRequest,
  signal: AbortSignal,
): PendingCall {
  const pending: PendingCall = {
    result: callTool(context, place, call, signal),
    settled: undefined,
  };
  // A failure rejects `result`; after an interruption no caller awaits it.
  pending.result.then(
    (called) => void (pending.settled = called),
    () => undefined,
  );
  return pending;
}

async function callTool(
  { catalogue }: Pick<RunContext, 'catalogue'>,
  { run: { state, settings, request }, round }: CallPlace,
  call: ToolCallRequest,
  signal: AbortSignal,
): Promise<ToolCallRecord> {
  const startedAt = performance.now();
  const { name, arguments: args } = call.function;
  const { agent, actor, replay } = request;
  const offered = settings.tools?.findIndex((tool) => tool.function.name === name) ?? -1;
  const functionCall = { name, arguments: args, account_id: actor.account_id };
  const replayed = replay?.findCall({ id: call.id, round, ...functionCall });
  const { result, is_error } =
    replayed?.answer ??
    (agent.tool === null
      ? { result: `There is no function ${name}.`, is_error: true }
      : await abortable(catalogue.toolbox.call(agent.tool, functionCall, signal), signal));
  return {
    turn: state.turn,
    call_id: replayed?.call_id ?? call.id,
    tool: name,
    ...(offered >= 0 && { offered }),
    arguments: args,
    ...(call.extra !== undefined && { extra: call.extra }),
    result,
    is_error,
    ...(replay && { replayed: replayed?.answer?.replayed ?? 'live' }),
    duration_ms: elapsedMs(startedAt),
  };
}
