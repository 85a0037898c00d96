import { Type } from 'typebox';
import { SessionId } from '../openapi/commonSchemas.ts';

/** The number of a turn in a path. */
export const TURN_NUMBER = '^[1-9][0-9]{0,8}$';
export const TurnNumber = Type.String({
  pattern: TURN_NUMBER,
  description: '1-based number of a turn in its session',
  examples: ['1'],
});

const turn = Type.Integer({ minimum: 1, description: '1-based number of the turn in its session' });

/** The response to a run that continues in the background. */
export const StartedTurn = Type.Object(
  {
    session_id: SessionId,
    turn,
    status: Type.Literal('running', { description: 'The turn is recorded and continues' }),
  },
  { title: 'StartedTurn', description: 'A turn that continues in the background' },
);

export const CancelBody = Type.Object(
  {
    turn: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 999_999_999,
        description: 'Cancels only this turn; without it, the open turn',
      }),
    ),
  },
  {
    additionalProperties: false,
    title: 'CancelRequest',
    description: 'The turn to cancel',
  },
);

export const CancelledTurn = Type.Object(
  {
    session_id: SessionId,
    turn,
    status: Type.Enum(['completed', 'failed', 'interrupted'], {
      description: 'How the turn ended; `interrupted` where it was cancelled',
    }),
    cancelled: Type.Boolean({
      description: 'Whether it was cancelled, by this request or by an earlier one',
    }),
  },
  { title: 'CancelledTurn', description: 'The outcome of a turn that was to be cancelled' },
);
