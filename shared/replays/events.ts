import type { Static } from 'typebox';
import { Type } from '../domain/jsonSchema.ts';
import {
  Erasure,
  eventSchema,
  ProtectedTextSchema,
  Tokens,
  type EventOf,
} from '../domain/schema.ts';
import { TurnNumber } from '../sessions/turns/promptParts.ts';

/** The source of tool results: the recording, or the tools themselves. */
export const TOOL_SOURCES = ['recorded', 'live'] as const;
/**
 * Handling of a call without a recorded result: end the replay of the session, call the tool, or
 * return an error to the model.
 */
export const MISSING_TOOL_POLICIES = ['stop', 'live', 'error-result'] as const;

const SessionToReplay = Type.Object(
  {
    session_id: Type.String(),
    revision: Type.Integer({ minimum: 0, description: 'What is replayed ends with this event' }),
    turns: Type.Integer({ minimum: 0, description: 'Turns that had begun by then' }),
    shared_turns: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'Those of them that a fork shares with its origin: they are not replayed',
      }),
    ),
  },
  { title: 'SessionToReplay', description: 'A session as it was when its replay was asked for' },
);
export type SessionToReplay = Static<typeof SessionToReplay>;

const Settings = {
  model: Type.Optional(
    Type.String({ description: 'Id of the model that answers in place of the recorded ones' }),
  ),
  instruction: Type.Optional(ProtectedTextSchema({ description: "In place of the agent's" })),
  agent_id: Type.Optional(
    Type.String({ description: "The agent that runs in place of the session's own" }),
  ),
  agent_revision: Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'Of that agent, or of each own one, in place of those that were recorded',
    }),
  ),
  tools: Type.Enum(TOOL_SOURCES),
  missing_tools: Type.Enum(MISSING_TOOL_POLICIES),
  from_turn: Type.Optional(TurnNumber),
  up_to_turn: Type.Optional(TurnNumber),
  concurrency: Type.Integer({ minimum: 1, description: 'Sessions that are replayed at a time' }),
  budget_tokens: Type.Integer({
    minimum: 1,
    description: 'Nothing more is begun once so many were used',
  }),
  checks: Type.Optional(ProtectedTextSchema({ description: 'The checks of its turns, as JSON' })),
};

const ReplayStarted = eventSchema(
  'replay.started.v1',
  { sessions: Type.Array(SessionToReplay), ...Settings },
  'Recorded sessions are to be run again, with these settings',
);

const ReplaySessionStarted = eventSchema(
  'replay.session_started.v1',
  { session_id: Type.String(), replay_session_id: Type.String() },
  'A session is replayed from now on, in a session of its own',
);

/** How a replayed turn compares with the recorded one. */
export const TURN_OUTCOMES = ['same', 'changed', 'failed', 'skipped'] as const;
export type TurnOutcome = (typeof TURN_OUTCOMES)[number];

const count = Type.Integer({ minimum: 0 });
export const ComparedCost = Type.Object(
  { amount: Type.String({ description: 'A decimal' }), currency: Type.String() },
  { title: 'ReplayCost', description: 'By the prices when the turns were compared' },
);
const Side = Type.Object(
  {
    model: Type.String({ description: 'Id of the model in the registry' }),
    tokens: Type.Optional(Tokens),
    duration_ms: Type.Optional(count),
    cost: Type.Optional(ComparedCost),
  },
  { title: 'ReplaySide', description: 'What a turn took' },
);

const CheckResult = Type.Object(
  {
    check: Type.Integer({ minimum: 0, description: 'Which check of the replay, from 0' }),
    passed: Type.Boolean(),
    code: Type.Optional(
      Type.String({
        description:
          'Why it could not be made: `budget_exhausted` of a judge that was not asked any more',
      }),
    ),
    session_id: Type.Optional(
      Type.String({ description: 'The session of the model that judged: its reasons' }),
    ),
    tokens: Type.Optional(Tokens),
  },
  { title: 'ReplayCheckResult', description: 'A check of a replayed turn' },
);
export type CheckResult = Static<typeof CheckResult>;

export const TurnComparison = Type.Object(
  {
    turn: TurnNumber,
    replay_turn: Type.Optional(
      Type.Integer({ minimum: 1, description: "Its number in the replay's session" }),
    ),
    outcome: Type.Enum(TURN_OUTCOMES, {
      description:
        'Whether the output is the same; `skipped`: the recorded turn has no answer, or was not begun again',
    }),
    code: Type.Optional(
      Type.String({
        description:
          'Why it failed: the code of the turn, such as `tool_not_recorded`, with which the replay of its session is stopped; or of what kept it from beginning, such as `invalid_request` where its prompt does not fit the model',
      }),
    ),
    requests: Type.Optional(
      Type.Enum(['same', 'changed'], { description: 'Whether the model was sent the same bytes' }),
    ),
    tools: Type.Object(
      { added: count, missing: count, changed: count, unanswered: count },
      {
        title: 'ReplayToolCalls',
        description:
          'Tool calls that the replay has more, less, or with other arguments or results; and those that nothing recorded answers',
      },
    ),
    recorded: Side,
    replayed: Type.Optional(Side),
    other_tokens: Type.Optional(
      Type.Integer({
        minimum: 1,
        description: 'Of earlier tries of the turn, and of summaries of older ones',
      }),
    ),
    checks: Type.Array(CheckResult),
  },
  {
    title: 'TurnComparison',
    description: 'A recorded turn beside its replay, without their texts',
  },
);
export type TurnComparison = Static<typeof TurnComparison>;

const ReplayTurnsCompared = eventSchema(
  'replay.turns_compared.v1',
  { session_id: Type.String(), turns: Type.Array(TurnComparison) },
  'Turns of a session were replayed and compared with what was recorded',
);

const SESSION_ENDS = ['completed', 'stopped', 'failed'] as const;
const ReplaySessionEnded = eventSchema(
  'replay.session_ended.v1',
  {
    session_id: Type.String(),
    status: Type.Enum(SESSION_ENDS, {
      description:
        '`stopped`: by a tool call that the log can’t answer; `failed`: it could not be replayed',
    }),
    code: Type.Optional(Type.String()),
    other_tokens: Type.Optional(
      Type.Integer({ minimum: 1, description: 'Of a turn that was begun and is not compared' }),
    ),
  },
  'Nothing more of a session is replayed',
);

const REPLAY_ENDS = ['completed', 'cancelled', 'budget_exhausted', 'failed'] as const;
const ReplayEndedSchema = eventSchema(
  'replay.ended.v1',
  { status: Type.Enum(REPLAY_ENDS), code: Type.Optional(Type.String()) },
  'A replay has ended: nothing more is begun',
);

const ReplayErased = eventSchema(
  'replay.erased.v1',
  Erasure.properties,
  'The texts of a replay were erased: nothing follows in its stream',
);

export const replayEventSchemas = [
  ReplayStarted,
  ReplaySessionStarted,
  ReplayTurnsCompared,
  ReplaySessionEnded,
  ReplayEndedSchema,
  ReplayErased,
] as const;

export type ReplayEvent = EventOf<(typeof replayEventSchemas)[number]>;
export type ReplayStartedData = EventOf<typeof ReplayStarted>['data'];
export type ReplaySettings = Omit<ReplayStartedData, 'sessions'>;
export type SessionEnd = EventOf<typeof ReplaySessionEnded>['data'];
export type ReplayEnd = EventOf<typeof ReplayEndedSchema>['data'];
