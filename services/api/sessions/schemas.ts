import { Type } from '../../../shared/domain/jsonSchema.ts';
import { Instant, Tokens } from '../../../shared/domain/schema.ts';
import { TurnContext } from '../../../shared/sessions/turns/promptParts.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  AgentId,
  CommonQuery,
  FinishReason,
  numberedPageQuery,
  ReplayId,
  Retry,
  SessionId,
} from '../openapi/commonSchemas.ts';
import { descriptionFields } from './descriptionSchemas.ts';

const FORK_DESCRIPTION =
  'Only of a fork: the session that recorded the turns up to one, which both share';
const ForkedFrom = Type.Object(
  {
    session_id: SessionId,
    turn: Type.Integer({ minimum: 1, description: 'The last turn that both have' }),
    revision: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'Of the event that ended the turn, in the stream of that session',
      }),
    ),
    hash: Type.Optional(Type.String({ description: 'The hash of that event' })),
  },
  { title: 'ForkPoint', description: FORK_DESCRIPTION },
);

const sessionFields = {
  session_id: SessionId,
  agent_id: AgentId,
  status: Type.Enum(['idle', 'running'], { description: '`running` while a turn is open' }),
  turn_count: Type.Integer({
    minimum: 0,
    description: 'The number of turns, including turns that a fork shares',
  }),
  ...descriptionFields,
  replay: Type.Optional(
    Type.Object(
      { replay_id: ReplayId, session_id: SessionId },
      {
        title: 'SessionReplay',
        description:
          'Of a session that a replay made: the replay, and the recorded session; of one in which a model judges, the session that it judges',
      },
    ),
  ),
  forked_from: Type.Optional(ForkedFrom),
  created_at: Instant,
  updated_at: Instant,
  revision: Type.Integer({
    minimum: 0,
    description: 'Of the last event of the session, counted from 0',
  }),
};

const SharedFrom = Type.Optional(
  Type.String({ description: 'Only of a turn that a fork shares: the session that recorded it' }),
);

export const ToolCall = Type.Object(
  {
    round: Type.Integer({ minimum: 1 }),
    call_id: Type.String(),
    tool: Type.String(),
    arguments: Type.String({ description: "The model's own JSON text" }),
    result: Type.String(),
    is_error: Type.Boolean(),
    duration_ms: Type.Integer({ minimum: 0 }),
    reasoning: Type.Optional(
      Type.String({
        description:
          "With `reasoning=true`: the model's reasoning before its calls, on the first call of a round",
      }),
    ),
  },
  { title: 'ToolCall', description: 'A tool that was called for the model' },
);

const TurnError = Type.Object(
  {
    code: Type.String({ description: 'As in the response to the run' }),
    message: Type.String(),
    reason: Type.Optional(
      Type.String({
        description: 'Of an interrupted turn',
        examples: ['cancelled', 'crash', 'deadline', 'shutdown'],
      }),
    ),
    retry: Retry,
  },
  { title: 'TurnError', description: 'Why a turn failed or was interrupted' },
);

export const Turn = Type.Object(
  {
    turn: Type.Integer({ minimum: 1 }),
    status: Type.Enum(['running', 'completed', 'failed', 'interrupted']),
    input: Type.String(),
    output: Type.Union([Type.String(), Type.Null()]),
    reasoning: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        description:
          "With `reasoning=true`: the model's reasoning before its answer; null where it sent none",
      }),
    ),
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
    origin_session_id: SharedFrom,
  },
  { title: 'Turn', description: 'One input and its outcome' },
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
export const IndexLag = Type.Object(
  {
    complete_until: Type.String({
      ...Instant,
      description: 'All turns that ended before this time were searched; later ones may be missing',
    }),
  },
  {
    title: 'IndexLag',
    description: 'With `q`, where the index does not include all turns of the account yet',
  },
);

export const EndedAt = Type.Object(
  {
    turn: Type.Integer({ minimum: 1 }),
    revision: Type.Integer({ minimum: 1, description: 'Of the last event of the turn' }),
    hash: Type.String({ description: 'Of that event' }),
    origin_session_id: SharedFrom,
  },
  { title: 'EndOfTurn', description: 'Identifies the session as of the end of a turn' },
);
export const Transcript = Type.Object(
  {
    ...sessionFields,
    at: Type.Optional(EndedAt),
    forked_from: Type.Optional(
      Type.Object(
        {
          ...ForkedFrom.properties,
          erased: Type.Boolean({
            description:
              'Turns that it shares were erased with the session that recorded them: the transcript begins after them',
          }),
        },
        { title: 'SharedHistory', description: FORK_DESCRIPTION },
      ),
    ),
    turns: Type.Array(Turn),
  },
  { title: 'Transcript', description: 'A session and a page of its turns' },
);

export const ForkBody = Type.Object(
  {
    at_turn: Type.Integer({
      minimum: 1,
      maximum: 999_999_999,
      description: 'The last turn that the fork shares; it must have ended',
    }),
  },
  { additionalProperties: false, title: 'ForkSession' },
);

const reasoningQuery = {
  reasoning: Type.Optional(
    Type.Boolean({ description: "Shows the model's reasoning, but not to chat tokens" }),
  ),
};

export const TurnQuery = Type.Object(
  { ...CommonQuery.properties, ...reasoningQuery },
  { additionalProperties: false },
);

export const TranscriptQuery = Type.Object(
  {
    ...numberedPageQuery('turns', 'Continues after this turn'),
    ...reasoningQuery,
    at_turn: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 999_999_999,
        description: 'The session as of the end of this turn',
      }),
    ),
  },
  { additionalProperties: false },
);
export const SessionEventsQuery = Type.Object(
  numberedPageQuery('events', 'Continues after this revision'),
  { additionalProperties: false },
);

const Hash = (description: string) => Type.String({ pattern: '^[0-9a-f]{64}$', description });

const TurnRequest = Type.Object(
  {
    call: Type.Integer({ minimum: 1, description: 'Its place among the requests of the turn' }),
    purpose: Type.Enum(['answer', 'compaction'], {
      description: '`compaction`: it asked for a summary of older turns, right before the turn',
    }),
    round: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      description: 'The number of the answered call in the turn; null for a compaction',
    }),
    request: Type.Record(Type.String(), Type.Unknown(), {
      description:
        'The body for the chat completions API, without the fields that request a stream',
    }),
    request_sha256: Hash('SHA-256 in hex of `request` in canonical JSON (RFC 8785)'),
    recorded_sha256: Type.String({ description: 'The recorded hash of the request that was sent' }),
    matches: Type.Boolean({ description: 'Whether both hashes are equal' }),
  },
  { title: 'TurnRequest', description: 'A model request of a turn, rebuilt from events' },
);
export const TurnRequests = Type.Array(TurnRequest);

export const TurnRequestsQuery = Type.Object(
  numberedPageQuery('requests', 'Continues after this call'),
  { additionalProperties: false },
);

/** The number of a turn in a path. */
export const TURN_NUMBER = '^[1-9][0-9]{0,8}$';
export const TurnNumber = Type.String({
  pattern: TURN_NUMBER,
  description: '1-based number of a turn in its session',
  examples: ['1'],
});

export const turnNumber = Type.Integer({
  minimum: 1,
  description: '1-based number of the turn in its session',
});

/** The response to a run that continues in the background. */
export const StartedTurn = Type.Object(
  {
    session_id: SessionId,
    turn: turnNumber,
    status: Type.Literal('running', { description: 'The turn is recorded and continues' }),
  },
  { title: 'StartedTurn', description: 'A turn that continues in the background' },
);

export const CancelBody = Type.Object(
  {
    turn: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 999_999_999,
        description: 'Cancels only this turn; without it, the open turn',
      }),
    ),
  },
  {
    additionalProperties: false,
    title: 'CancelRequest',
    description: 'The turn to cancel',
  },
);

export const CancelledTurn = Type.Object(
  {
    session_id: SessionId,
    turn: turnNumber,
    status: Type.Enum(['completed', 'failed', 'interrupted'], {
      description: 'How the turn ended; `interrupted` where it was cancelled',
    }),
    cancelled: Type.Boolean({
      description: 'Whether it was cancelled, by this request or by an earlier one',
    }),
  },
  { title: 'CancelledTurn', description: 'The outcome of a turn that was to be cancelled' },
);
