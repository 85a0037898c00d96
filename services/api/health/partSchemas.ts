import { Type } from '../../../shared/domain/jsonSchema.ts';

export const countOrNull = (description: string) =>
  Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], { description });

export const ToolServers = Type.Array(
  Type.Object(
    {
      name: Type.String(),
      state: Type.Enum(['starting', 'up', 'away'], {
        description: '`away`: its calls fail, and the connection is retried',
      }),
      tools: Type.Integer({ minimum: 0, description: 'Tools of the server that are available' }),
      reason: Type.Optional(Type.String({ description: 'Why it is away' })),
      problems: Type.Optional(
        Type.Array(Type.String(), {
          description:
            'Why tools are missing or faulty: no memory for the list of tools, tools that are not offered, and tools whose last answer had content that is not valid; the first 10, absent without any',
        }),
      ),
    },
    { title: 'ToolServerHealth', description: 'A server of tools for agents' },
  ),
  { description: 'Absent without any' },
);

export const TransparencyLog = Type.Object(
  {
    state: Type.Enum(['standing_by', 'active'], {
      description: '`standing_by` while another process grows it, or none can',
    }),
    size: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description:
        'Events under the newest checkpoint; null while another process grows the log, or before the first checkpoint',
    }),
    lag_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description: 'For how long there have been events that no checkpoint covers; null likewise',
    }),
    signed_at: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'When this process signed the newest checkpoint',
    }),
    trouble: Type.Optional(
      Type.String({ description: 'Why it does not grow; absent while it does' }),
    ),
    doubt: Type.Optional(
      Type.String({
        description:
          'Present when the log was begun for a log with events which has no record of an earlier one, or an outvoted witness contradicts it; found by this or another process at its start',
      }),
    ),
    witnesses: Type.Optional(
      Type.Object(
        {
          wanted: Type.Integer({
            minimum: 1,
            description: 'The required number of cosignatures',
          }),
          reached: Type.Integer({
            minimum: 0,
            description: 'The number of cosignatures of the served checkpoint',
          }),
          missing: Type.Array(Type.String(), {
            description: 'The names of the witnesses that have not cosigned it',
          }),
          reason: Type.Optional(
            Type.String({
              description:
                'Why there have been too few for a minute; absent while there are enough',
            }),
          ),
        },
        {
          title: 'WitnessesHealth',
          description: 'The witnesses that cosign checkpoints; absent if none are configured',
        },
      ),
    ),
  },
  {
    title: 'TransparencyLogHealth',
    description: 'Growing the transparency log, if the process does',
  },
);

export const ReplaysHealth = Type.Object(
  {
    state: Type.Enum(['standing_by', 'active'], {
      description: '`standing_by` while another process runs replays, or none can',
    }),
    running: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description: 'Running replays of all accounts; null while another process runs them',
    }),
    reason: Type.Optional(Type.String({ description: 'Why replays, or one of them, can’t run' })),
  },
  { title: 'ReplaysHealth', description: 'Running replays' },
);

export const WebhooksHealth = Type.Object(
  {
    state: Type.Enum(['standing_by', 'active'], {
      description: '`standing_by` while another process sends, or none can',
    }),
    enabled: countOrNull('Enabled webhooks of all accounts; null while another process sends'),
    failing: countOrNull(
      'Webhooks whose receivers fail, which their accounts have to fix; null while another process sends',
    ),
    reason: Type.Optional(
      Type.String({ description: 'Why messages can’t be sent, to all or to some of them' }),
    ),
  },
  { title: 'WebhooksHealth', description: 'Sending events to webhooks' },
);
