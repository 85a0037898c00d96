import { Type } from 'typebox';

/** What health says of the transparency log. */
export const TransparencyLog = Type.Object(
  {
    state: Type.Enum(['standing_by', 'active'], {
      description: '`standing_by` while another process grows it, or none can',
    }),
    size: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description:
        'Events under the newest checkpoint; null while another process knows it, or nobody yet',
    }),
    lag_ms: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()], {
      description: 'For how long there have been events that no checkpoint covers; likewise',
    }),
    signed_at: Type.Union([Type.String({ format: 'date-time' }), Type.Null()], {
      description: 'When the newest checkpoint was signed, if this process has',
    }),
    trouble: Type.Optional(
      Type.String({ description: 'Why it is not carried on; absent while it is' }),
    ),
    witnesses: Type.Optional(
      Type.Object(
        {
          wanted: Type.Integer({
            minimum: 1,
            description: 'How many cosignatures a checkpoint is to have',
          }),
          reached: Type.Integer({
            minimum: 0,
            description: 'How many the one has that is served',
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
          description: 'Who cosigns the checkpoints; absent where nobody is asked to',
        },
      ),
    ),
  },
  {
    title: 'TransparencyLogHealth',
    description: 'Growing the transparency log, where the process does',
  },
);
