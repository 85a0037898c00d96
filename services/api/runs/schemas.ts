import { Type } from '../../../shared/domain/jsonSchema.ts';
import { Tokens } from '../../../shared/domain/schema.ts';
import { TurnContext } from '../../../shared/sessions/turns/promptParts.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { FinishReason, SessionId, textSchema } from '../openapi/commonSchemas.ts';

export const RunBody = Type.Object(
  {
    input: textSchema({
      maxBytes: LIMITS.text.inputBytes,
      description:
        'Input text for the agent to process, at most 512 KiB of UTF-8, and at most 960 KiB as JSON',
      examples: ['What is 12*34?'],
    }),
    session_id: Type.Optional(
      Type.Unsafe<string>({
        ...textSchema({
          maxLength: LIMITS.text.referenceCharacters,
          description: 'Session to continue; a new one is started when absent or null',
        }),
        type: ['string', 'null'],
      }),
    ),
  },
  {
    additionalProperties: false,
    title: 'RunRequest',
    description: 'The input of a run',
    'x-null-is-absent': true,
  },
);

const RunMetadata = Type.Object(
  {
    model: Type.String({ description: 'The model as the provider reported it' }),
    tool_used: Type.String({
      description: 'The first function of the agent that was called; empty if none was',
    }),
    tokens: Tokens,
    finish_reason: FinishReason,
    context: Type.Optional(TurnContext),
  },
  { title: 'RunMetadata', description: 'Details of an answer' },
);

export const RunResult = Type.Object(
  {
    output: Type.String({ description: "The agent's response to the input" }),
    session_id: SessionId,
    metadata: RunMetadata,
  },
  { title: 'RunResult', description: 'The answer of a run' },
);
