import type { ChatMessage } from '../sessions/turns/chat.ts';
import { turnMessages } from '../sessions/turns/prompt.ts';
import { correctedCall } from '../sessions/turns/requestForm.ts';
import { jsonSlices } from '../lib/slices.ts';
import { collectTools, exportedOutput, type SessionWriter } from './record.ts';

/** Each tool call is corrected when it is written, since its arguments are parsed. */
const correctedMessage = (message: ChatMessage): object =>
  message.role === 'assistant' && message.tool_calls
    ? { ...message, tool_calls: message.tool_calls.map((call) => () => correctedCall(call)) }
    : message;

/**
 * Writes a session as a line of a fine-tuning file for OpenAI's API: the messages of the answered
 * turns as the models saw them, and all offered tools. A session without answers gives no line.
 */
export function createOpenaiChatWriter(): SessionWriter {
  const tools = collectTools();
  let system: string | undefined;
  let isBegun = false;
  return {
    *add(record, agent) {
      if (record.kind !== 'turn' || record.ended.type !== 'session.turn_completed.v1') return;
      tools.add(record);
      // The format has only OpenAI's own fields.
      const tool_calls = record.tool_calls.map(
        ({ data: { extra: _extra, reasoning: _reasoning, ...call } }) => call,
      );
      const messages: object[] = turnMessages({
        turn: record.started.data.turn,
        input: record.started.data.input,
        tool_calls,
        output: exportedOutput(record),
      }).map(correctedMessage);
      if (agent && agent.instruction !== system) {
        system = agent.instruction;
        messages.unshift({ content: system, role: 'system' });
      }
      for (const message of messages) {
        yield isBegun ? ',' : '{"messages":[';
        isBegun = true;
        yield* jsonSlices(message);
      }
    },
    *end() {
      if (!isBegun) return;
      yield ']';
      const offered = tools.list();
      if (offered) {
        yield ',"tools":';
        yield* jsonSlices(offered);
      }
      yield '}\n';
    },
  };
}
