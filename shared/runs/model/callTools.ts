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
import { recordInRun } from '../recordTurn.ts';
import type { ToolAllowance } from './toolAllowance.ts';

interface Round {
  run: OpenRun;
  round: number;
  answer: ChatAnswer;
  allowance: ToolAllowance;
}

type Called = Omit<ToolCalledData, 'round' | 'content'>;

/** A call that was begun, and what came of it once it has ended. */
interface Begun {
  ended: Promise<Called>;
  called: Called | undefined;
}

/**
 * Makes the tool calls of one answer side by side, and records them in the model's order. A call
 * that ended is recorded in any case; what has not ended when the run is cut off is let go of.
 * Errors: those of the allowance for what goes beyond it, `tool_not_recorded`, those of recordInRun, the signal's reason.
 */
export async function callTools(
  context: RunContext,
  { run, round, answer, allowance }: Round,
  signal: AbortSignal,
): Promise<void> {
  const { tool_calls: calls } = answer;
  allowance.take(calls.length);
  const stop = new AbortController();
  const listening = addAbortListener(signal, () => stop.abort(signal.reason));
  const begun: Begun[] = [];
  let recorded = 0;
  let recording = false;

  async function begin(call: ToolCallRequest): Promise<void> {
    // Calls that resolve at once would keep everything else waiting, the run's own time limit too.
    if (begun.length > 0) await yieldToOthers();
    signal.throwIfAborted();
    const content = begun.length === 0 ? (answer.content ?? '') : '';
    allowance.spend(call.id, call.function.name, call.function.arguments, content);
    begun.push(beginCall(context, run, call, stop.signal));
  }

  async function record(called: Called): Promise<void> {
    recording = true;
    const content = recorded === 0 && answer.content ? { content: answer.content } : {};
    const whole = { ...called, ...content, round };
    await recordInRun(context, run, { type: 'record_tool_call', run: run.state, call: whole });
    recorded += 1;
    recording = false;
    run.turn.tool_calls.push(whole);
    run.live.called(whole);
    if (whole.replayed === 'missing' && run.request.replay?.stops)
      throw toolNotRecordedError(whole.tool);
  }

  try {
    for (const index of calls.keys()) {
      while (begun.length < Math.min(calls.length, index + LIMITS.run.parallelToolCalls))
        await begin(calls[begun.length]!);
      const called = await begun[index]!.ended;
      await record(called);
      allowance.spend(called.result);
    }
  } catch (error) {
    stop.abort(error);
    const left = recording ? [] : begun.slice(recorded).flatMap(({ called }) => called ?? []);
    // The run fails of what came first; where the log is away as well, its end finds out.
    await recordEach(left, record).catch(() => undefined);
    throw error;
  } finally {
    listening[Symbol.dispose]();
  }
}

async function recordEach(
  left: readonly Called[],
  record: (called: Called) => Promise<void>,
): Promise<void> {
  for (const called of left) await record(called);
}

function beginCall(
  context: RunContext,
  run: OpenRun,
  call: ToolCallRequest,
  signal: AbortSignal,
): Begun {
  const begun: Begun = {
    ended: callTool(context, run, call, signal),
    called: undefined,
  };
  // Who waits for it hears of a failure; nobody may, once the run was cut off.
  begun.ended.then(
    (called) => void (begun.called = called),
    () => undefined,
  );
  return begun;
}

async function callTool(
  { catalogue }: Pick<RunContext, 'catalogue'>,
  { state, request }: OpenRun,
  call: ToolCallRequest,
  signal: AbortSignal,
): Promise<Called> {
  const began = performance.now();
  const { name, arguments: args } = call.function;
  const { agent, actor, replay } = request;
  const wanted = { name, arguments: args, account_id: actor.account_id };
  const replayed = replay?.answer(wanted);
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
