import { Type } from 'typebox';
import { Instant, Tokens } from '../../../shared/domain/schema.ts';
import { ComparedCost } from '../../../shared/replays/events.ts';
import { ReplayId, replayPageQuery } from '../openapi/commonSchemas.ts';

const strict = { additionalProperties: false };

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

/** A replay without the texts of its settings. */
export const replayFields = {
  replay_id: ReplayId,
  status: Type.Enum(['running', 'completed', 'cancelled', 'budget_exhausted', 'failed'], {
    description: '`budget_exhausted`: its tokens were used before its turns were run',
  }),
  code: orNull(Type.String({ description: 'Why it failed' })),
  sums: Sums,
  created_at: Instant,
  updated_at: Instant,
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
