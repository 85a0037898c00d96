import { Type } from 'typebox';

/** Agents and their runs. */
export const runOptions = {
  COMPONENTS: Type.String({
    default: 'Chat',
    pattern: '^[^,\\s]+(,[^,\\s]+)*$',
    description:
      'UI components that agents may name, separated by commas; the first is the default',
  }),
  RUN_TIMEOUT_MS: Type.Integer({
    default: 120_000,
    minimum: 1,
    maximum: 3_600_000,
    description: 'Time limit of a whole run: model calls, retries and tools',
  }),
  RUN_WAIT_MS: Type.Integer({
    default: 30_000,
    minimum: 0,
    maximum: 3_600_000,
    description:
      'How long a run waits for another run of its session before it answers 409 `session_busy`',
  }),
};
