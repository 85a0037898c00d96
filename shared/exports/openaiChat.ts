import type { ChatMessage, ToolDefinition } from '../sessions/turns/chat.ts';
import { turnMessages } from '../sessions/turns/prompt.ts';
import { correctedCall } from '../sessions/turns/requestForm.ts';
import { jsonSlices } from '../lib/slices.ts';
import { exportedOutput, type SessionWriter } from './record.ts';

/** Each tool call is corrected when it is written, since its arguments are parsed. */
const correctedMessage = (message: ChatMessage): object =>
  message.role === 'assistant' && message.tool_calls
    ? { ...message, tool_calls: message.tool_calls.map((call) => () => correctedCall(call)) }
    : message;

/**
 * Writes a session as a line of a fine-tuning file for OpenAI's API: the messages of the answered
 * turns as the models saw them, and all offered tools. A session without answers gives no line.
 */
export function openaiChat(): SessionWriter {
  const tools = new Map<string, ToolDefinition>();
  let system: string | undefined;
  let isBegun = false;
  return {
    *add(record, agent) {
      if (record.kind !== 'turn' || record.ended.type !== 'session.turn_completed.v1') return;
      const { input, settings } = record.started.data;
      for (const tool of settings.tools ?? []) tools.set(tool.function.name, tool);
      // The format has only OpenAI's own fields.
      const tool_calls = record.tool_calls.map(
        ({ data: { extra: _extra, reasoning: _reasoning, ...call } }) => call,
      );
      const messages: object[] = turnMessages({
        turn: record.started.data.turn,
        input,
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
    end() {
      if (!isBegun) return '';
      const offered = tools.size === 0 ? '' : `,"tools":${JSON.stringify([...tools.values()])}`;
      return `]${offered}}\n`;
    },
  };
}
