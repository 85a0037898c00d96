import { Type } from 'typebox';
import { Instant, Tokens } from '../../../shared/domain/schema.ts';
import { TurnContext } from '../../../shared/domain/session/parts.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { AgentId, FinishReason, numberedPageQuery, SessionId } from './common.ts';
import { described } from './sessionDescription.ts';

const sessionFields = {
  session_id: SessionId,
  agent_id: AgentId,
  status: Type.Enum(['idle', 'running'], { description: '`running` while a turn is open' }),
  turn_count: Type.Integer({ minimum: 0, description: 'How many turns began' }),
  ...described,
  created_at: Instant,
  updated_at: Instant,
};

export const ToolCall = Type.Object(
  {
    round: Type.Integer({ minimum: 1 }),
    call_id: Type.String(),
    tool: Type.String(),
    arguments: Type.String({ description: "The model's own JSON text" }),
    result: Type.String(),
    is_error: Type.Boolean(),
    duration_ms: Type.Integer({ minimum: 0 }),
  },
  { title: 'ToolCall', description: 'A tool that was called for the model' },
);

const TurnError = Type.Object(
  { code: Type.String(), message: Type.String() },
  { title: 'TurnError', description: 'Why a turn failed or was interrupted' },
);

export const Turn = Type.Object(
  {
    turn: Type.Integer({ minimum: 1 }),
    status: Type.Enum(['running', 'completed', 'failed', 'interrupted']),
    input: Type.String(),
    output: Type.Union([Type.String(), Type.Null()]),
    model: Type.String(),
    agent_revision: Type.Integer({
      minimum: 0,
      description: 'Revision of the agent that it ran with',
    }),
    tool_used: Type.String(),
    tool_calls: Type.Array(ToolCall),
    tokens: Type.Union([Tokens, Type.Null()]),
    finish_reason: Type.Union([FinishReason, Type.Null()]),
    error: Type.Union([TurnError, Type.Null()], {
      description: 'Why it failed or was interrupted',
    }),
    context: Type.Union([TurnContext, Type.Null()]),
    started_at: Instant,
    ended_at: Type.Union([Instant, Type.Null()]),
  },
  { title: 'Turn', description: 'One input and how it ended' },
);

export const Session = Type.Object(sessionFields, {
  title: 'Session',
  description: 'A session without its turns',
});
export const SessionList = Type.Array(
  Type.Object(
    {
      ...sessionFields,
      matches: Type.Optional(
        Type.Array(Type.Integer({ minimum: 1 }), {
          description: `With \`q\`: the numbers of the turns that have the words, the first ${LIMITS.search.matches}`,
        }),
      ),
    },
    { title: 'ListedSession', description: 'A session as the list shows it' },
  ),
);
export const Transcript = Type.Object(
  { ...sessionFields, turns: Type.Array(Turn) },
  { title: 'Transcript', description: 'A session and a page of its turns' },
);

export const TranscriptQuery = Type.Object(
  numberedPageQuery('turns', 'Continues after this turn'),
  { additionalProperties: false },
);
export const SessionEventsQuery = Type.Object(
  numberedPageQuery('events', 'Continues after this revision'),
  { additionalProperties: false },
);
