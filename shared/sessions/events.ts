import { Type } from '../domain/jsonSchema.ts';
import { ModelCall, Settings, TurnContext, TurnNumber as Turn } from './turns/promptParts.ts';
import {
  Erasure,
  eventSchema,
  Instant,
  ProtectedTextSchema,
  Tokens,
  type EventOf,
} from '../domain/schema.ts';

const REPLAY_ROLES = ['replay', 'judge'] as const;

const SessionStarted = eventSchema(
  'session.started.v1',
  {
    agent_id: Type.String(),
    forked_from: Type.Optional(
      Type.Object(
        {
          session_id: Type.String(),
          turn: Turn,
          revision: Type.Optional(
            Type.Integer({ minimum: 0, description: 'Of the event that ended the turn' }),
          ),
          hash: Type.Optional(Type.String({ description: 'The hash of that event' })),
        },
        { title: 'ForkedFrom', description: 'The session and the turn that it was forked from' },
      ),
    ),
    replay: Type.Optional(
      Type.Object(
        {
          replay_id: Type.String(),
          session_id: Type.String({
            description:
              'The recorded session; of a judge, the one whose turn it judges, which a replay made, too',
          }),
          role: Type.Enum(REPLAY_ROLES, {
            description:
              '`replay`: it runs the turns again; `judge`: a model judges one of them in it',
          }),
        },
        { title: 'ReplayOf', description: 'Of a session that a replay made' },
      ),
    ),
    user_hmac: Type.Optional(
      Type.String({
        description:
          'The end user whose chat token started it: an HMAC-SHA256 under a secret of the account that is in no log',
      }),
    ),
    instruction: Type.Optional(
      ProtectedTextSchema({ description: "What its turns run with in place of the agent's" }),
    ),
  },
  'A session began',
);

const SummarySession = Type.Optional(
  Type.String({
    description: 'The session of that event where it is another: one that this one was forked from',
  }),
);

const TurnStarted = eventSchema(
  'session.turn_started.v1',
  {
    turn: Turn,
    input: ProtectedTextSchema(),
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
    context: Type.Optional(TurnContext),
    summary_revision: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'Revision of the newest session.compacted event; its summary is in the prompt where `context` says so',
      }),
    ),
    summary_session_id: SummarySession,
    replay_of: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Of a replay: the recorded turn that is run again' }),
    ),
    owner: Type.String({ description: 'Instance that runs the turn' }),
    deadline: Instant,
    idempotency_key: Type.Optional(Type.String()),
  },
  'A turn began: what was asked, and all that its model requests are built from',
);

const REPLAYED_CALLS = ['recorded', 'live', 'missing'] as const;

const ToolCalled = eventSchema(
  'session.tool_called.v1',
  {
    turn: Turn,
    round: Type.Integer({
      minimum: 1,
      description: 'Which model call of the turn asked for it, from 1',
    }),
    // Protected, because models invent names and providers may derive ids from the texts.
    call_id: ProtectedTextSchema({ description: "The provider's id of the call" }),
    tool: ProtectedTextSchema({ description: 'The name of the function, as the model wrote it' }),
    offered: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          'Which of the functions in `settings.tools` it is, from 0; absent where the model invented one, and in old events',
      }),
    ),
    arguments: ProtectedTextSchema({ description: "The model's own text, verbatim" }),
    extra: Type.Optional(
      ProtectedTextSchema({
        description:
          "The provider's own fields of the call, as JSON; they are sent back with the call",
      }),
    ),
    content: Type.Optional(
      ProtectedTextSchema({
        description: 'Text that the model wrote beside its calls; on the first call of a round',
      }),
    ),
    reasoning: Type.Optional(
      ProtectedTextSchema({
        description:
          "The model's reasoning before its calls, which is sent back with them; on the first call of a round",
      }),
    ),
    result: ProtectedTextSchema(),
    is_error: Type.Boolean(),
    replayed: Type.Optional(
      Type.Enum(REPLAYED_CALLS, {
        description:
          'Of a replay: whether the result is the recorded one, one of the tool itself, or says that there is none',
      }),
    ),
    duration_ms: Type.Integer({ minimum: 0 }),
  },
  'A tool was called for the model',
);

const TurnCompleted = eventSchema(
  'session.turn_completed.v1',
  {
    turn: Turn,
    output: ProtectedTextSchema(),
    reasoning: Type.Optional(
      ProtectedTextSchema({ description: "The model's reasoning before its answer" }),
    ),
    model: Type.String({ description: 'As the provider reported it' }),
    tool_used: Type.String({ description: 'Empty when no tool was called' }),
    tokens: Tokens,
    finish_reason: Type.String(),
    duration_ms: Type.Integer({ minimum: 0 }),
    calls: Type.Array(ModelCall),
  },
  'A turn was answered',
);

const TurnFailed = eventSchema(
  'session.turn_failed.v1',
  {
    turn: Turn,
    code: Type.String(),
    message: ProtectedTextSchema(),
    output: Type.Optional(
      ProtectedTextSchema({
        description: "The model's answer, where it is not what was asked for",
      }),
    ),
    tokens: Type.Optional(Tokens),
    calls: Type.Array(ModelCall),
  },
  'A turn ended without an answer',
);

const INTERRUPTION_REASONS = ['crash', 'cancelled', 'deadline'] as const;
export type InterruptionReason = (typeof INTERRUPTION_REASONS)[number];

/**
 * The cause of an interruption, separate from its reason because older releases only know the
 * reason.
 */
const INTERRUPTION_CAUSES = ['shutdown'] as const;
export type InterruptionCause = (typeof INTERRUPTION_CAUSES)[number];

const TurnInterrupted = eventSchema(
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

const SessionCompacted = eventSchema(
  'session.compacted.v1',
  {
    from_turn: Turn,
    up_to_turn: Turn,
    dropped: Type.Optional(
      Type.Integer({
        minimum: 1,
        description:
          'Earlier turns that had fallen out before, and that the summary knows nothing of',
      }),
    ),
    summary: ProtectedTextSchema({
      description: 'What prompts hold in place of the turns up to `up_to_turn`',
    }),
    agent_revision: Type.Integer({ minimum: 0 }),
    model: Type.Optional(Type.String({ description: 'Id of the model in the registry' })),
    settings: Settings,
    summary_revision: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'Revision of the event whose summary the new one continues',
      }),
    ),
    summary_session_id: SummarySession,
    call: ModelCall,
  },
  'Older turns of a session were summarised; the turns themselves stay as they were',
);

const Label = Type.Object(
  { name: ProtectedTextSchema(), value: ProtectedTextSchema() },
  { title: 'Label', description: 'What a session is found by' },
);

export const SessionDescribed = eventSchema(
  'session.described.v1',
  {
    title: Type.Optional(ProtectedTextSchema()),
    labels: Type.Array(Label),
    last_turn: Type.Optional(
      Type.Integer({
        minimum: 0,
        description: 'The last turn that had begun, and ended; absent in early releases',
      }),
    ),
  },
  'A session was given a title or labels; all that it has after the change',
);

const SessionErased = eventSchema(
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
  SessionCompacted,
  SessionDescribed,
  SessionErased,
] as const;

export type SessionEvent = EventOf<(typeof sessionEventSchemas)[number]>;

const BESIDE_TURNS = ['session.described.v1'] as const;

/**
 * True for an event that belongs to no turn and to no prompt: it changes columns of the
 * session's row. Any number of them may stand between two turns. They name the last turn, except in
 * early releases.
 */
export const isBesideTurns = <Event extends { type: string }>(
  event: Event,
): event is Extract<Event, { type: (typeof BESIDE_TURNS)[number] }> =>
  (BESIDE_TURNS as readonly string[]).includes(event.type);

export type ForkedFrom = NonNullable<EventOf<typeof SessionStarted>['data']['forked_from']>;
export type SessionStartedData = EventOf<typeof SessionStarted>['data'];
/** The origin of a fork with all members, which forks recorded by this release have. */
export type ForkPoint = Required<ForkedFrom>;
export type TurnStartedData = EventOf<typeof TurnStarted>['data'];
export type ToolCalledData = EventOf<typeof ToolCalled>['data'];
export type TurnCompletedData = EventOf<typeof TurnCompleted>['data'];
export type SessionCompactedData = EventOf<typeof SessionCompacted>['data'];
export type TurnFailedData = EventOf<typeof TurnFailed>['data'];
export type TurnInterruptedData = EventOf<typeof TurnInterrupted>['data'];
