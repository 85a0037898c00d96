import { Type } from 'typebox';
import { Tokens } from '../../../shared/domain/schema.ts';
import { FinishReason, InputText, SessionId } from './common.ts';
import { text } from './text.ts';

export const RunBody = Type.Object(
  {
    input: InputText,
    session_id: Type.Optional(
      text({
        minLength: 1,
        maxLength: 256,
        description: 'Session to continue; a new one is started when absent',
      }),
    ),
  },
  { additionalProperties: false },
);

export const RunResult = Type.Object({
  output: Type.String({ description: "The agent's response to the input" }),
  session_id: SessionId,
  metadata: Type.Object({
    model: Type.String({ description: 'The model as the provider reported it' }),
    tool_used: Type.String({
      description: 'The first function that was called of those the agent has; empty when none was',
    }),
    tokens: Tokens,
    finish_reason: FinishReason,
  }),
});
