import { Type } from 'typebox';

/** Options of retention. */
export const retentionOptions = {
  RETENTION_CONFIRM_PERCENT: Type.Integer({
    default: 20,
    minimum: 1,
    maximum: 100,
    description:
      'When more than this share of an account’s sessions, and more than 100, are past their maximum at once, they are erased only after an operator has confirmed it; 100: without asking',
  }),
  DATABASE_CLOCK_INDEPENDENT: Type.Boolean({
    default: false,
    description:
      'PostgreSQL runs on another machine than the services, with a clock of its own: where both clocks agree, retention believes them after a stop, too',
  }),
};
