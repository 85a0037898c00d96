import { addAbortListener } from 'node:events';
import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { ToolCallRequest } from '../../sessions/turns/chat.ts';
import type { ToolCalledData } from '../../sessions/events.ts';
import { LIMITS } from '../../limits.ts';
import { elapsedMs } from '../../lib/time/elapsedMs.ts';
import type { ChatAnswer } from '../../ports/chatModel.ts';
import { toolNotRecordedError } from '../../replays/errors.ts';
import { abortable } from '../../lib/concurrency/abortable.ts';
import type { OpenRun, RunContext } from '../context.ts';
import { recordTurnEvent, type RecordTurnContext } from '../recordTurn.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';

/**
 * What the tool calls of one turn may still take, so that a turn stays readable whatever its model
 * asks for.
 */
interface ToolAllowance {
  /** So many calls, before the first of them is made. */
  countCalls(calls: number): void;
  /** Texts that are recorded. */
  countBytes(...texts: string[]): void;
}

const tooManyCalls = (what: string): TurnlogError =>
  new TurnlogError('tool_error', `The model called tools too often: ${what}.`);

/**
 * The allowance of a turn that begins. `hold` takes room for so many bytes beside the prompt, all of
 * them at once; false where there is none. A few need none: little tools work in a full process.
 */
export function createToolAllowance(hold: (bytes: number) => boolean): ToolAllowance {
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
      if (bytes <= toolCallBytesUnheld || hold(bytes)) return;
      throw new TurnlogError(
        'tool_error',
        'There is no room now for all that the tools of this turn have answered. Try again later.',
        { retriable: true },
      );
    },
  };
}

type ToolCallContext = RecordTurnContext & Pick<RunContext, 'catalogue'>;

interface Round {
  run: OpenRun;
  round: number;
  answer: ChatAnswer;
  allowance: ToolAllowance;
}

type ToolCallRecord = Omit<ToolCalledData, 'round' | 'content'>;

/** A call that was begun, and what came of it once it has ended. */
interface PendingCall {
  result: Promise<ToolCallRecord>;
  settled: ToolCallRecord | undefined;
}

/**
 * Makes the tool calls of one answer side by side, and records them in the model's order. A call
 * that ended is recorded in any case; what has not ended when the run is cut off is let go of.
 */
export async function callTools(
  context: ToolCallContext,
  { run, round, answer, allowance }: Round,
  signal: AbortSignal,
): Promise<void> {
  const { tool_calls: calls } = answer;
  allowance.countCalls(calls.length);
  const stop = new AbortController();
  const listening = addAbortListener(signal, () => stop.abort(signal.reason));
  const begun: PendingCall[] = [];
  let recorded = 0;
  let recording = false;

  async function begin(call: ToolCallRequest): Promise<void> {
    // Calls that resolve at once would keep everything else waiting, the run's own time limit too.
    if (begun.length > 0) await yieldToOthers();
    signal.throwIfAborted();
    const content = begun.length === 0 ? (answer.content ?? '') : '';
    allowance.countBytes(call.id, call.function.name, call.function.arguments, content);
    begun.push(startCall(context, run, call, stop.signal));
  }

  async function record(called: ToolCallRecord): Promise<void> {
    recording = true;
    const content = recorded === 0 && answer.content ? { content: answer.content } : {};
    const whole = { ...called, ...content, round };
    await recordTurnEvent(context, run, { type: 'record_tool_call', run: run.state, call: whole });
    recorded += 1;
    recording = false;
    run.turn.tool_calls.push(whole);
    run.publisher.publishToolCall(whole);
    if (whole.replayed === 'missing' && run.request.replay?.failsOnMissingCall)
      throw toolNotRecordedError(whole.tool);
  }

  try {
    for (const index of calls.keys()) {
      while (begun.length < Math.min(calls.length, index + LIMITS.run.parallelToolCalls))
        await begin(calls[begun.length]!);
      const called = await begun[index]!.result;
      await record(called);
      allowance.countBytes(called.result);
    }
  } catch (error) {
    stop.abort(error);
    const left = recording ? [] : begun.slice(recorded).flatMap(({ settled }) => settled ?? []);
    // The run fails of what came first; where the log is away as well, its end finds out.
    await recordEach(left, record).catch(() => undefined);
    throw error;
  } finally {
    listening[Symbol.dispose]();
  }
}

async function recordEach(
  left: readonly ToolCallRecord[],
  record: (called: ToolCallRecord) => Promise<void>,
): Promise<void> {
  for (const called of left) await record(called);
}

function startCall(
  context: ToolCallContext,
  run: OpenRun,
  call: ToolCallRequest,
  signal: AbortSignal,
): PendingCall {
  const begun: PendingCall = {
    result: callTool(context, run, call, signal),
    settled: undefined,
  };
  // Who waits for it hears of a failure; nobody may, once the run was cut off.
  begun.result.then(
    (called) => void (begun.settled = called),
    () => undefined,
  );
  return begun;
}

async function callTool(
  { catalogue }: Pick<RunContext, 'catalogue'>,
  { state, request }: OpenRun,
  call: ToolCallRequest,
  signal: AbortSignal,
): Promise<ToolCallRecord> {
  const began = performance.now();
  const { name, arguments: args } = call.function;
  const { agent, actor, replay } = request;
  const wanted = { name, arguments: args, account_id: actor.account_id };
  const replayed = replay?.recordedResult(wanted);
  const { result, is_error } =
    replayed ??
    (agent.tool === null
      ? { result: `There is no function ${name}.`, is_error: true }
      : await abortable(catalogue.toolbox.call(agent.tool, wanted, signal), signal));
  return {
    turn: state.turn,
    call_id: call.id,
    tool: name,
    arguments: args,
    result,
    is_error,
    ...(replay && { replayed: replayed?.replayed ?? 'live' }),
    duration_ms: elapsedMs(began),
  };
}
