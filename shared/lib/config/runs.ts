import { Type } from '../../domain/jsonSchema.ts';

/** Options of agents and their runs. */
export const runOptions = {
  COMPONENTS: Type.String({
    default: 'Chat',
    pattern: '^[^,\\s]+(,[^,\\s]+)*$',
    'x-rule': 'must be names separated by commas, without spaces',
    description: 'Default UI component of agents; of several, separated by commas, the first',
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
      'How long a run waits for its session (then 409 `session_busy`) and for a slot (then 429 `rate_limited` or 503 `overloaded`)',
  }),
  MAX_RUNS: Type.Integer({
    default: 1_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Maximum runs in flight per process',
  }),
  MAX_RUNS_PER_ACCOUNT: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description: 'Maximum of them per account; default half',
    }),
  ),
  MAX_PROMPT_BYTES: Type.Optional(
    Type.Integer({
      minimum: 4_194_304,
      maximum: 1_099_511_627_776,
      description:
        'Maximum prompt bytes of runs in flight, and as many of waiting runs; default a part of the heap (`heap.prompts`)',
    }),
  ),
  RATE_LIMIT_PER_SECOND: Type.Integer({
    default: 20_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Requests per second of an API key on all processes, then 429 `rate_limited`',
  }),
};
