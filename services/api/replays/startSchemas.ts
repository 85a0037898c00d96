import { Type } from 'typebox';
import { MISSING_TOOL_POLICIES, TOOL_SOURCES } from '../../../shared/replays/events.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { AgentId, ReplayId, SessionId } from '../openapi/commonSchemas.ts';
import { Checks } from './checkSchemas.ts';
import { sessionFilters } from '../sessions/descriptionSchemas.ts';
import { textSchema } from '../openapi/textSchemas.ts';
import { Instant } from '../../../shared/domain/schema.ts';

const { replays: OF } = LIMITS;
const strict = { additionalProperties: false };

const turn = (description: string) =>
  Type.Integer({ minimum: 1, maximum: 999_999_999, description });
const MAX_INTEGER = 2_147_483_647;

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
  tools: Type.Enum(TOOL_SOURCES, {
    description:
      'The source of tool results: `recorded`, without calling tools; or `live`, from the tools',
  }),
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
  budget: Type.Object(
    {
      tokens: Type.Integer({
        minimum: 1,
        maximum: LIMITS.model.tokens,
        description:
          'No turn or judge starts after turns and judges have used so many tokens, including all attempts',
        examples: [100_000],
      }),
    },
    { ...strict, title: 'ReplayBudget', description: 'Limit of the replay' },
  ),
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
export const ReplaySettings = Type.Object(given, {
  title: 'ReplaySettings',
  description: 'The settings of the replay',
});

export const CancelReplayBody = Type.Object(
  {},
  { ...strict, title: 'CancelReplayRequest', description: 'No fields' },
);
