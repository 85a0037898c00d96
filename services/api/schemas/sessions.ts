import { Type } from 'typebox';
import { Instant, Tokens } from '../../../shared/domain/schema.ts';
import { EventMetadata } from '../../../shared/eventlog/event.ts';
import { AgentId, FinishReason, numberedPageQuery, pageQuery, SessionId } from './common.ts';
import { text } from './text.ts';

const sessionFields = {
  session_id: SessionId,
  agent_id: AgentId,
  status: Type.Enum(['idle', 'running'], { description: '`running` while a turn is open' }),
  turn_count: Type.Integer({ minimum: 0, description: 'How many turns began' }),
  created_at: Instant,
  updated_at: Instant,
};

const ToolCall = Type.Object({
  round: Type.Integer({ minimum: 1 }),
  call_id: Type.String(),
  tool: Type.String(),
  arguments: Type.String({ description: "The model's own JSON text" }),
  result: Type.String(),
  is_error: Type.Boolean(),
  duration_ms: Type.Integer(),
});

const Turn = Type.Object({
  turn: Type.Integer({ minimum: 1 }),
  status: Type.Enum(['running', 'completed', 'failed', 'interrupted']),
  input: Type.String(),
  output: Type.Union([Type.String(), Type.Null()]),
  model: Type.String(),
  tool_used: Type.String(),
  tool_calls: Type.Array(ToolCall),
  tokens: Type.Union([Tokens, Type.Null()]),
  finish_reason: Type.Union([FinishReason, Type.Null()]),
  error: Type.Union([Type.Object({ code: Type.String(), message: Type.String() }), Type.Null()], {
    description: 'Why a turn failed or was interrupted',
  }),
  started_at: Instant,
  ended_at: Type.Union([Instant, Type.Null()]),
});

export const Session = Type.Object(sessionFields);
export const SessionList = Type.Array(Session);
export const Transcript = Type.Object({ ...sessionFields, turns: Type.Array(Turn) });

export const SessionEvents = Type.Array(
  Type.Object({
    id: Type.String({ description: 'UUID' }),
    stream: Type.String(),
    revision: Type.Integer({ minimum: 0 }),
    type: Type.String(),
    data: Type.Unknown(),
    metadata: EventMetadata,
  }),
);

export const SessionListQuery = Type.Object(
  {
    ...pageQuery({ default: 100, description: 'The most sessions to answer' }),
    agent_id: Type.Optional(
      text({ minLength: 1, maxLength: 256, description: 'Only sessions of this agent' }),
    ),
  },
  { additionalProperties: false },
);
export const TranscriptQuery = Type.Object(
  numberedPageQuery('turns', 'Continues after this turn'),
  { additionalProperties: false },
);
export const SessionEventsQuery = Type.Object(
  numberedPageQuery('events', 'Continues after this revision'),
  { additionalProperties: false },
);
