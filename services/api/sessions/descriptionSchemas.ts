import { Type } from '../../../shared/domain/jsonSchema.ts';
import type { DescriptionChange } from '../../../shared/sessions/description.ts';
import { OUTCOMES } from '../../../shared/sessions/turns/outcomes.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  agentIdFilter,
  listOrderQuery,
  replayIdFilter,
  sessionPageQuery,
  textSchema,
  timeSchema,
} from '../openapi/commonSchemas.ts';

const { description: OF } = LIMITS;

const NAME = `[a-z0-9._-]{1,${OF.labelNameCharacters}}`;

const Title = textSchema({
  maxLength: OF.titleCharacters,
  description: `What the session is called, at most ${OF.titleCharacters} characters`,
  examples: ['A refund'],
});
const LabelValue = textSchema({
  maxLength: OF.labelValueCharacters,
  description: `At most ${OF.labelValueCharacters} characters`,
});

/** Title and labels of a session in responses. */
export const descriptionFields = {
  title: Type.Union([Type.String(), Type.Null()], { description: 'Title of the session' }),
  labels: Type.Record(Type.String(), Type.String(), {
    description: 'Labels to find the session by',
  }),
};

export const DescribeSessionBody = Type.Unsafe<DescriptionChange>(
  Type.Object(
    {
      title: Type.Optional(Type.Union([Title, Type.Null()])),
      labels: Type.Optional(
        Type.Union([
          Type.Record(Type.String(), Type.Union([LabelValue, Type.Null()]), {
            maxProperties: OF.labelsChanged,
            propertyNames: {
              pattern: `^${NAME}$`,
              'x-rule': `must have names of 1 to ${OF.labelNameCharacters} of a to z, 0 to 9, ".", "_" and "-"`,
            },
            description: `Labels to set; null removes one, or all of them in place of the object. A session has at most ${OF.labels}`,
            examples: [{ customer: '4711', draft: null }],
          }),
          Type.Null(),
        ]),
      ),
    },
    {
      additionalProperties: false,
      title: 'DescribeSessionRequest',
      description: 'Changes of a session’s title and labels (RFC 7396)',
    },
  ),
);

/** An instant in a query. */
const instant = (description: string) =>
  Type.Optional(
    timeSchema(`${description}. RFC 3339 with any offset, or a date: its beginning in UTC`),
  );

/** Filters of sessions. */
export const sessionFilters = {
  q: Type.Optional(
    textSchema({
      maxLength: LIMITS.search.queryCharacters,
      // Classes of Unicode letters differ between languages: only what is of the first characters without any is excluded.
      pattern:
        '[^\\u0000-/:-@\\[-`{-\\u00A9\\u00AB-\\u00B1\\u00B4\\u00B6-\\u00B8\\u00BB\\u00BF\\u00D7\\u00F7]',
      'x-rule': 'must have a letter or a digit',
      description: `Only sessions in which the input and the output of one ended turn have all of these words, at most ${LIMITS.search.queryWords}, in whatever order`,
      examples: ['refund invoice'],
    }),
  ),
  agent_id: Type.Optional(agentIdFilter('Only sessions of this agent')),
  status: Type.Optional(
    Type.Enum(['idle', 'running'], {
      description: 'Only sessions with a turn that is open, or with none',
    }),
  ),
  outcome: Type.Optional(
    Type.Enum(OUTCOMES, {
      description:
        'Only sessions with a turn that ended so; turns that a fork shares count in the session that recorded them',
    }),
  ),
  label: Type.Optional(
    Type.Array(
      Type.String({
        pattern: `^${NAME}:[^\\u0000]+$`,
        maxLength: OF.labelNameCharacters + 1 + OF.labelValueCharacters,
        'x-rule': 'must be a name and a value with a colon between them, such as customer:4711',
        examples: ['customer:4711'],
      }),
      {
        maxItems: OF.labelsSought,
        description: `Only sessions with this label: its name, a colon and its value. May be given ${OF.labelsSought} times: with all of them`,
      },
    ),
  ),
  created_from: instant('Only sessions that began then or later'),
  created_to: instant('Only sessions that began before'),
  updated_from: instant('Only sessions whose last event came then or later'),
  updated_to: instant('Only sessions whose last event came before'),
  replay_id: Type.Optional(
    replayIdFilter('Only sessions that this replay made, which are listed nowhere else'),
  ),
};

export const SessionListQuery = Type.Object(
  {
    ...sessionPageQuery({ default: 100, description: 'The most sessions to answer' }),
    order: listOrderQuery('Which come first, by the beginning of the session'),
    ...sessionFilters,
  },
  { additionalProperties: false },
);
