import { Type } from 'typebox';
import { TURN_OUTCOMES, TurnComparison } from '../../../shared/replays/events.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  replayPageQuery,
  SessionId,
  sessionIdFilter,
  sessionPageQuery,
} from '../openapi/commonSchemas.ts';
import { replayFields } from './schemas.ts';
import { ReplaySettings } from './startSchemas.ts';

const strict = { additionalProperties: false };

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
