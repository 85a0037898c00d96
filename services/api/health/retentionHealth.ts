import { Type } from 'typebox';

const Counted = (description: string) =>
  Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
    description: `${description}; null before its first one, and while another process sweeps`,
  });

export const Retention = Type.Object(
  {
    state: Type.Enum(['waiting', 'sweeping', 'standing_by', 'refusing', 'failing'], {
      description:
        '`waiting` for the next sweep; `standing_by` while another process sweeps; `refusing` while the clock is not believed; `failing` after a sweep that could not end',
    }),
    due: Counted('Sessions past their maximum that its last sweep left'),
    held: Counted('Those of them whose account is held'),
    failed: Counted('Those of them that could not be erased'),
    erased: Type.Integer({ minimum: 0, description: 'By this process, since its start' }),
    reason: Type.Optional(
      Type.String({ description: 'Why it refuses or fails, or why the last one failed' }),
    ),
  },
  {
    title: 'RetentionHealth',
    description:
      'Erasing sessions past the maximum of their account’s retention, where an account has one',
  },
);
