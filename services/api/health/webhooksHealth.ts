import { Type } from 'typebox';

const Counted = (description: string) =>
  Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
    description: `${description}; null while another process sends`,
  });

export const WebhooksHealth = Type.Object(
  {
    state: Type.Enum(['standing_by', 'active'], {
      description: '`standing_by` while another process sends, or none can',
    }),
    enabled: Counted('Webhooks that events are sent to, of all accounts'),
    failing: Counted('Those of them whose receivers fail, which is for their accounts to mend'),
    reason: Type.Optional(
      Type.String({ description: 'Why nothing can be sent, or of some of them not' }),
    ),
  },
  { title: 'WebhooksHealth', description: 'Sending events to webhooks' },
);
