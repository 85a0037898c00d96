import { setImmediate as yieldToOthers } from 'node:timers/promises';
import type { ToolCallRequest } from '../../domain/session/chat.ts';
import type { ToolCalledData } from '../../domain/session/events.ts';
import { msSince } from '../../msSince.ts';
import type { ChatAnswer } from '../../ports/chatModel.ts';
import { unlessAborted } from '../../unlessAborted.ts';
import type { OpenRun, RunContext } from './context.ts';
import { recordInRun } from './record.ts';
import type { ToolAllowance } from './toolAllowance.ts';

interface Round {
  run: OpenRun;
  round: number;
  answer: ChatAnswer;
  allowance: ToolAllowance;
}

/** Makes and records the tool calls of one answer. A call that ended is recorded in any case. */
export async function callTools(
  context: RunContext,
  { run, round, answer, allowance }: Round,
  signal: AbortSignal,
): Promise<void> {
  allowance.take(answer.tool_calls.length);
  for (const [index, call] of answer.tool_calls.entries()) {
    // Calls that resolve at once would keep everything else waiting, the run's own time limit too.
    if (index > 0) await yieldToOthers();
    signal.throwIfAborted();
    const content = index === 0 && answer.content ? { content: answer.content } : {};
    allowance.spend(call.id, call.function.name, call.function.arguments, content.content ?? '');
    const called = { ...(await callTool(context, run, call, signal)), ...content, round };
    await recordInRun(context, run, { type: 'record_tool_call', run: run.state, call: called });
    run.turn.tool_calls.push(called);
    run.live.called(called);
    allowance.spend(called.result);
  }
}

async function callTool(
  { catalogue }: Pick<RunContext, 'catalogue'>,
  { state, request }: OpenRun,
  call: ToolCallRequest,
  signal: AbortSignal,
): Promise<Omit<ToolCalledData, 'round'>> {
  const began = performance.now();
  const { name, arguments: args } = call.function;
  const { result, is_error } =
    request.agent.tool === null
      ? { result: `There is no function ${name}.`, is_error: true }
      : await unlessAborted(catalogue.toolbox.call(request.agent.tool, name, args, signal), signal);
  return {
    turn: state.turn,
    call_id: call.id,
    tool: name,
    arguments: args,
    result,
    is_error,
    duration_ms: msSince(began),
  };
}
