import { Type } from '../../../shared/domain/jsonSchema.ts';
import { Instant, Tokens } from '../../../shared/domain/schema.ts';
import {
  ComparedCost,
  MISSING_TOOL_POLICIES,
  TOOL_SOURCES,
  TURN_OUTCOMES,
  TurnComparison,
} from '../../../shared/replays/events.ts';
import {
  ReplayId,
  replayPageQuery,
  AgentId,
  SessionId,
  sessionIdFilter,
  sessionPageQuery,
  textSchema,
} from '../openapi/commonSchemas.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { Checks } from './checkSchemas.ts';
import { sessionFilters } from '../sessions/descriptionSchemas.ts';

const { replays: OF } = LIMITS;
const strict = { additionalProperties: false };

const turn = (description: string) =>
  Type.Integer({ minimum: 1, maximum: 999_999_999, description });
const MAX_INTEGER = 2_147_483_647;

const ReplayBudget = Type.Object(
  {
    tokens: Type.Integer({
      minimum: 1,
      maximum: LIMITS.model.tokens,
      description:
        'No turn or judge starts after turns and judges have used so many tokens, including all attempts',
      examples: [100_000],
    }),
  },
  {
    ...strict,
    title: 'ReplayBudget',
    description: `Limit of the replay, ${OF.defaultBudgetTokens} tokens by default`,
  },
);

const settings = {
  model: Type.Optional(
    textSchema({
      maxLength: LIMITS.text.referenceCharacters,
      offered: 'models',
      description: 'The model that answers in place of the recorded ones',
    }),
  ),
  instruction: Type.Optional(
    textSchema({
      maxBytes: LIMITS.text.instructionBytes,
      description: "In place of the agent's",
      examples: ['Answer in one sentence.'],
    }),
  ),
  agent_id: Type.Optional(AgentId),
  agent_revision: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_INTEGER,
      description:
        'The revision of that agent, or of each session’s own; without it the newest of the one, and those that were recorded of the others',
    }),
  ),
  tools: Type.Optional(
    Type.Enum(TOOL_SOURCES, {
      default: 'recorded',
      description:
        'The source of tool results: `recorded`, without calling tools; or `live`, from the tools',
    }),
  ),
  missing_tools: Type.Optional(
    Type.Enum(MISSING_TOOL_POLICIES, {
      default: 'stop',
      description:
        'How to handle a call without a recorded result: end the replay of the session, call the tool, or tell the model',
    }),
  ),
  turns: Type.Optional(
    Type.Object(
      {
        from: Type.Optional(turn('The first turn; those before it are shared')),
        up_to: Type.Optional(turn('The last one')),
      },
      {
        ...strict,
        title: 'TurnRange',
        description: 'The turns of each session to replay; all by default',
      },
    ),
  ),
  concurrency: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: OF.concurrency,
      default: 1,
      description: 'Sessions to replay concurrently',
    }),
  ),
  budget: Type.Optional(ReplayBudget),
  checks: Type.Optional(Checks),
};

const Filter = Type.Object(sessionFilters, {
  ...strict,
  title: 'SessionsToReplay',
  description: `The sessions that the list shows with these filters, beside those of \`sessions\`; ${OF.sessions} at the most`,
});

export const StartReplayBody = Type.Object(
  {
    sessions: Type.Optional(
      Type.Array(SessionId, {
        minItems: 1,
        maxItems: OF.sessions,
        uniqueItems: true,
        description:
          'The sessions to replay; without them and without `filter`, all listed sessions',
      }),
    ),
    filter: Type.Optional(Filter),
    ...settings,
  },
  {
    ...strict,
    title: 'StartReplayRequest',
    description: 'Recorded sessions, and the configuration to replay them with',
  },
);

export const StartedReplay = Type.Object(
  { replay_id: ReplayId, created_at: Instant },
  { title: 'StartedReplay', description: 'A replay that runs in the background' },
);

const { sessions: _sessions, filter: _filter, ...given } = StartReplayBody.properties;
/** The settings of a replay. */
export const ReplaySettings = Type.Object(
  { ...given, tools: Type.Enum(TOOL_SOURCES), budget: ReplayBudget },
  { title: 'ReplaySettings', description: 'The settings of the replay' },
);

export const CancelReplayBody = Type.Object(
  {},
  { ...strict, title: 'CancelReplayRequest', description: 'No fields' },
);

const count = Type.Integer({ minimum: 0 });
const counts = (names: readonly string[], title: string, description: string) =>
  Type.Object(Object.fromEntries(names.map((name) => [name, count])), { title, description });

const Took = Type.Object(
  {
    tokens: Tokens,
    duration_ms: count,
    cost: Type.Union([ComparedCost, Type.Null()], {
      description: 'Of the turns whose cost is known',
    }),
    unpriced: Type.Integer({ minimum: 0, description: 'Turns whose cost is not known' }),
  },
  { title: 'TurnsTook', description: 'Total usage of turns' },
);
const Sums = Type.Object(
  {
    sessions: counts(
      ['total', 'completed', 'stopped', 'failed'],
      'ReplaySessionCounts',
      'All sessions, and those whose replay has ended',
    ),
    turns: counts(
      ['total', 'same', 'changed', 'failed', 'skipped'],
      'ReplayTurnCounts',
      'All turns, and those that were compared, by outcome',
    ),
    requests: counts(
      ['same', 'changed'],
      'ReplayRequestCounts',
      'Turns whose models were sent the same bytes, or other ones',
    ),
    tools: counts(
      ['added', 'missing', 'changed', 'unanswered'],
      'ReplayToolCounts',
      'Tool calls that were added, removed, or had other arguments or results; and calls without a recorded result',
    ),
    checks: counts(['passed', 'failed'], 'ReplayCheckCounts', 'Checks that were made'),
    recorded: Took,
    replayed: Took,
    judge_tokens: Type.Integer({ minimum: 0, description: 'Tokens of the models that judged' }),
    other_tokens: Type.Integer({
      minimum: 0,
      description:
        'Tokens of failed attempts and of summaries; they count towards the budget, as do `judge_tokens` and those of `replayed`',
    }),
  },
  {
    title: 'ReplaySums',
    description:
      'Totals of its turns; `recorded` and `replayed` are of the same turns, those that were run again',
  },
);

const orNull = (schema: ReturnType<typeof Type.String>) => Type.Union([schema, Type.Null()]);

const Replacements = Type.Object(
  {
    model: Type.Optional(Type.String()),
    agent_id: Type.Optional(AgentId),
    agent_revision: Type.Optional(Type.Integer({ minimum: 0 })),
    instruction: Type.Boolean({ description: 'Whether another instruction is used' }),
  },
  { title: 'ReplayReplacements', description: 'The settings in place of the recorded ones' },
);

/** A replay without the texts of its settings. */
const replayFields = {
  replay_id: ReplayId,
  status: Type.Enum(['running', 'completed', 'cancelled', 'budget_exhausted', 'failed'], {
    description: '`budget_exhausted`: its tokens were used before its turns were run',
  }),
  code: orNull(Type.String({ description: 'Why it failed' })),
  replacements: Replacements,
  sums: Sums,
  created_at: Instant,
  updated_at: Instant,
  revision: Type.Integer({
    minimum: 0,
    description: 'Of the last event of the replay, counted from 0',
  }),
};

export const Replay = Type.Object(replayFields, {
  title: 'Replay',
  description: 'A replay in the list',
});
export const ReplayList = Type.Array(Replay);
export const ReplayListQuery = Type.Object(
  replayPageQuery({ default: 100, description: 'The most replays to answer' }),
  strict,
);

const DiffPart = Type.Object(
  {
    op: Type.Enum(['same', 'removed', 'added'], {
      description: '`removed`: only in the recorded output; `added`: only in the replayed one',
    }),
    text: Type.String(),
  },
  { title: 'DiffPart', description: 'A piece of two outputs' },
);

export const ReplayTurn = Type.Object(
  {
    session_id: SessionId,
    replay_session_id: Type.Union([Type.String(), Type.Null()], {
      description: 'The session in which it was run again',
    }),
    ...TurnComparison.properties,
    diff: Type.Optional(
      Type.Array(DiffPart, { description: 'Of a changed output: the recorded one beside it' }),
    ),
    diff_omitted: Type.Optional(
      Type.Enum(['erased', 'too_long', 'too_different'], {
        description: 'Why a changed output is not shown beside the recorded one',
      }),
    ),
  },
  { title: 'ReplayTurn', description: 'A recorded turn and its replay' },
);

export const ShownReplay = Type.Object(
  { ...replayFields, settings: ReplaySettings, turns: Type.Array(ReplayTurn) },
  { title: 'ShownReplay', description: 'A replay and a page of its turns' },
);

const { after: _after, ...page } = replayPageQuery({
  default: 50,
  description: `The most turns to answer, ${LIMITS.replays.pageTurns} at the most`,
});

export const ReplayQuery = Type.Object(
  {
    ...page,
    after: Type.Optional(
      Type.String({
        pattern: '^session_[0-7][0-9a-hjkmnp-tv-z]{25}\\.[0-9]{10}$',
        'x-rule': 'must be taken from the `Link` header of the page before',
        examples: ['session_01kahz1c3sf6w9m3v5q7x9z1a3.0000000007'],
        description: 'Continues after this turn; take it from the `Link` header of the page before',
      }),
    ),
    only: Type.Optional(
      Type.Enum([...TURN_OUTCOMES, 'checks_failed'], {
        description: 'Only turns with this outcome, or with a check that failed',
      }),
    ),
    session_id: Type.Optional(sessionIdFilter('Only turns of this recorded session')),
  },
  strict,
);

export const ReplaySession = Type.Object(
  {
    session_id: SessionId,
    replay_session_id: Type.Union([Type.String(), Type.Null()], {
      description: 'The session in which it is run again; null before that has begun',
    }),
    turns: Type.Integer({
      minimum: 0,
      description: 'Its own turns that had begun when the replay was started',
    }),
    status: Type.Enum(
      ['waiting', 'running', 'completed', 'stopped', 'failed', 'cancelled', 'budget_exhausted'],
      {
        description:
          '`stopped`: by a tool call that was not recorded; `failed`: it could not be replayed; `cancelled`, `budget_exhausted`: the replay ended so before it',
      },
    ),
    code: Type.Union([Type.String(), Type.Null()], {
      description: 'Why it ended before its last turn',
    }),
  },
  { title: 'ReplaySession', description: 'A session of a replay, and its progress' },
);
export const ReplaySessionList = Type.Array(ReplaySession);
export const ReplaySessionsQuery = Type.Object(
  sessionPageQuery({ default: 100, description: 'The most sessions to answer' }),
  strict,
);
