import { Type, type Static } from 'typebox';
import { Erasure, eventSchema, Instant, ProtectedText, Tokens, type EventOf } from '../schema.ts';

const Turn = Type.Integer({ minimum: 1, description: '1-based number of the turn in its session' });

export const ModelCall = Type.Object(
  {
    // Without a salt it would tell whether a guess at the erased texts is right.
    request_sha256: ProtectedText({
      description: 'SHA-256 in hex of the request body in canonical JSON (RFC 8785)',
    }),
    response_id: Type.String(),
    model: Type.String({ description: 'As the provider reported it' }),
    finish_reason: Type.String(),
    tokens: Tokens,
    duration_ms: Type.Integer({ minimum: 0 }),
  },
  { title: 'ModelCall', description: 'One model call that answered' },
);
export type ModelCall = Static<typeof ModelCall>;

const FunctionDefinition = Type.Object(
  {
    name: Type.String(),
    description: Type.String(),
    parameters: Type.Record(Type.String(), Type.Unknown()),
  },
  { title: 'FunctionDefinition', description: 'A function that the model may call' },
);

/**
 * What every request of the turn says beside its messages: the requests can be built again from
 * events alone.
 */
const Settings = Type.Object(
  {
    model: Type.String({ description: "The provider's own name of the model" }),
    max_completion_tokens: Type.Optional(Type.Integer()),
    tools: Type.Optional(
      Type.Array(
        Type.Object(
          { type: Type.Literal('function'), function: FunctionDefinition },
          { title: 'ToolDefinition', description: 'What a model request says of a tool' },
        ),
      ),
    ),
  },
  { title: 'TurnSettings', description: 'What every request of a turn says beside its messages' },
);

export const SessionStarted = eventSchema(
  'session.started.v1',
  {
    agent_id: Type.String(),
    forked_from: Type.Optional(
      Type.Object(
        { session_id: Type.String(), turn: Turn },
        { title: 'ForkedFrom', description: 'The session and the turn that it was forked from' },
      ),
    ),
  },
  'A session began',
);

export const TurnStarted = eventSchema(
  'session.turn_started.v1',
  {
    turn: Turn,
    input: ProtectedText(),
    agent_revision: Type.Integer({
      minimum: 0,
      description: "Revision of the agent's stream that this turn runs with",
    }),
    model: Type.String({ description: 'Id of the model in the registry' }),
    settings: Settings,
    context_from_turn: Type.Integer({
      minimum: 1,
      description: 'Oldest turn in the prompt; the turn itself when none came before',
    }),
    owner: Type.String({ description: 'Instance that runs the turn' }),
    deadline: Instant,
    idempotency_key: Type.Optional(Type.String()),
  },
  'A turn began: what was asked, and all that its model requests are built from',
);

export const ToolCalled = eventSchema(
  'session.tool_called.v1',
  {
    turn: Turn,
    round: Type.Integer({
      minimum: 1,
      description: 'Which model call of the turn asked for it, from 1',
    }),
    call_id: Type.String(),
    tool: Type.String(),
    arguments: ProtectedText({ description: "The model's own text, verbatim" }),
    content: Type.Optional(
      ProtectedText({
        description: 'Text that the model wrote beside its calls; on the first call of a round',
      }),
    ),
    result: ProtectedText(),
    is_error: Type.Boolean(),
    duration_ms: Type.Integer({ minimum: 0 }),
  },
  'A tool was called for the model',
);

export const TurnCompleted = eventSchema(
  'session.turn_completed.v1',
  {
    turn: Turn,
    output: ProtectedText(),
    model: Type.String({ description: 'As the provider reported it' }),
    tool_used: Type.String({ description: 'Empty when no tool was called' }),
    tokens: Tokens,
    finish_reason: Type.String(),
    duration_ms: Type.Integer({ minimum: 0 }),
    calls: Type.Array(ModelCall),
  },
  'A turn was answered',
);

export const TurnFailed = eventSchema(
  'session.turn_failed.v1',
  {
    turn: Turn,
    code: Type.String(),
    message: ProtectedText(),
    tokens: Type.Optional(Tokens),
    calls: Type.Array(ModelCall),
  },
  'A turn ended without an answer',
);

const INTERRUPTION_REASONS = ['crash', 'cancelled', 'deadline'] as const;
export type InterruptionReason = (typeof INTERRUPTION_REASONS)[number];

/** What is said beside a reason, which older releases know alone. */
const INTERRUPTION_CAUSES = ['shutdown'] as const;
export type InterruptionCause = (typeof INTERRUPTION_CAUSES)[number];

export const TurnInterrupted = eventSchema(
  'session.turn_interrupted.v1',
  {
    turn: Turn,
    reason: Type.Enum(INTERRUPTION_REASONS),
    cause: Type.Optional(
      Type.Enum(INTERRUPTION_CAUSES, {
        description:
          'With `crash`: the service was shut down in order, and its grace time was over',
      }),
    ),
  },
  'A turn was cut off: by a client, a crash, a shut-down, or its deadline',
);

export const SessionErased = eventSchema(
  'session.erased.v1',
  Erasure.properties,
  'The texts of a session were erased: nothing follows in its stream',
);

export const sessionEventSchemas = [
  SessionStarted,
  TurnStarted,
  ToolCalled,
  TurnCompleted,
  TurnFailed,
  TurnInterrupted,
  SessionErased,
] as const;

export type SessionEvent = EventOf<(typeof sessionEventSchemas)[number]>;
export type TurnStartedData = EventOf<typeof TurnStarted>['data'];
export type ToolCalledData = EventOf<typeof ToolCalled>['data'];
export type TurnCompletedData = EventOf<typeof TurnCompleted>['data'];
export type TurnFailedData = EventOf<typeof TurnFailed>['data'];
export type TurnInterruptedData = EventOf<typeof TurnInterrupted>['data'];
