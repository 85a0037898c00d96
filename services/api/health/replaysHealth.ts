import { Type } from 'typebox';

export const ReplaysHealth = Type.Object(
  {
    state: Type.Enum(['standing_by', 'active'], {
      description: '`standing_by` while another process runs replays, or none can',
    }),
    running: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description: 'Replays that run, of all accounts; null while another process runs them',
    }),
    reason: Type.Optional(Type.String({ description: 'Why none can be run, or one of them not' })),
  },
  { title: 'ReplaysHealth', description: 'Running replays' },
);
