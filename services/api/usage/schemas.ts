import { Type } from '../../../shared/domain/jsonSchema.ts';
import { Tokens } from '../../../shared/domain/schema.ts';
import { QUOTA_NAMES, type QuotaName } from '../../../shared/storage/quotaRules.ts';
import { LIMITS } from '../../../shared/limits.ts';
import {
  AgentId,
  agentIdFilter,
  CommonQuery,
  textSchema,
  timeSchema,
} from '../openapi/commonSchemas.ts';

/** The columns that usage is grouped by, in the order of its entries. */
export const DIMENSIONS = ['day', 'agent', 'model', 'key', 'kind', 'code'] as const;
const oneOf = `(${DIMENSIONS.join('|')})`;

const DAY = {
  pattern: '^\\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])$',
  examples: ['2026-11-20'],
};

export const UsageQuery = Type.Object(
  {
    ...CommonQuery.properties,
    from: timeSchema('The first day, in UTC: a date, or a time of RFC 3339 on that day'),
    to: timeSchema('The last day, in UTC: a date, or a time of RFC 3339 on that day'),
    by: Type.Optional(
      Type.String({
        pattern: `^${oneOf}(,${oneOf})*$`,
        maxLength: 100,
        'x-rule': `must be some of ${DIMENSIONS.join(', ')}, separated by commas`,
        examples: ['day,model'],
        description: 'Columns to group by, separated by commas; without it there is one sum',
      }),
    ),
    agent_id: Type.Optional(agentIdFilter('Only usage of this agent')),
    model: Type.Optional(
      textSchema({
        maxLength: LIMITS.text.referenceCharacters,
        description: 'Only usage of this model',
      }),
    ),
    key_id: Type.Optional(
      textSchema({
        maxLength: LIMITS.text.referenceCharacters,
        description: 'Only usage of this API key',
      }),
    ),
    kind: Type.Optional(
      Type.Enum(['run', 'replay'], { description: 'Only runs of clients, or only replays' }),
    ),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: LIMITS.http.pageEntries,
        default: 100,
        description: 'The most entries to answer',
      }),
    ),
    after: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9_-]{1,8192}$',
        'x-rule': 'must be that of the `Link` header of the page before',
        examples: ['WyIyMDI2LTExLTIwIiwiZ3B0LTRvIl0'],
        description: 'Continues a list; take it from the `Link` header of the page before',
      }),
    ),
  },
  { additionalProperties: false },
);

const count = (description: string) => Type.Integer({ minimum: 0, description });

const Cost = Type.Object(
  {
    amount: Type.String({
      description: 'An exact decimal, which may be finer than the smallest coin',
      examples: ['0.00123'],
    }),
    currency: Type.String({ description: 'ISO 4217', examples: ['USD'] }),
  },
  { title: 'Cost', description: 'Cost of tokens, at current prices' },
);

const UsageEntry = Type.Object(
  {
    day: Type.Optional(Type.String({ ...DAY, description: 'UTC' })),
    agent_id: Type.Optional(AgentId),
    model: Type.Optional(
      Type.String({ description: 'Id of the model that answered, or that failed' }),
    ),
    key_id: Type.Optional(Type.String({ description: 'The API key whose runs they were' })),
    kind: Type.Optional(
      Type.Enum(['run', 'replay'], { description: '`replay`: turns that a replay ran again' }),
    ),
    code: Type.Optional(
      Type.Union([Type.String(), Type.Null()], {
        description: 'Why turns failed or were interrupted; null of what was completed',
      }),
    ),
    runs: count('Turns that ended'),
    completed: count('Those with an answer'),
    failed: count('Those without one'),
    interrupted: count('Those that were cut off; of their model calls nothing is known'),
    tokens: Tokens,
    model_calls: count('Model calls that answered, those for summaries included'),
    tool_calls: count('Calls of tools'),
    cost: Type.Union([Cost, Type.Null()], {
      description: 'Null where no model has a price in the models file',
    }),
    unpriced_tokens: count('Tokens of models without a price, which the cost leaves out'),
  },
  { title: 'UsageEntry', description: 'Usage of runs' },
);

export const Usage = Type.Array(UsageEntry);

const StorageQuota = Type.Object(
  {
    used: count('What is used of it'),
    limit: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
      description: 'Null for none',
    }),
  },
  { title: 'StorageQuota', description: 'A quota and what is used of it' },
);

export const StorageUse = Type.Object(
  {
    day: Type.String({ ...DAY, description: 'The current day, in UTC' }),
    resets_at: Type.String({
      format: 'date-time',
      description: 'When the quotas of the next day begin',
    }),
    quotas: Type.Object(
      Object.fromEntries(QUOTA_NAMES.map((name) => [name, StorageQuota])) as Record<
        QuotaName,
        typeof StorageQuota
      >,
      {
        title: 'StorageQuotas',
        description:
          'Events and their bytes (data and metadata), per day and in total, and entries of the audit per day',
      },
    ),
  },
  { title: 'StorageUse', description: 'What the events of an account take in the log' },
);
