import { Type } from 'typebox';

/** Options of agents and their runs. */
export const runOptions = {
  COMPONENTS: Type.String({
    default: 'Chat',
    pattern: '^[^,\\s]+(,[^,\\s]+)*$',
    description:
      'UI component of agents that name none; of several, separated by commas, the first',
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
      'How long a run waits for another run of its session, then 409 `session_busy`, and for its place, then 429 `rate_limited` or 503 `overloaded`',
  }),
  MAX_RUNS: Type.Integer({
    default: 1_000,
    minimum: 1,
    maximum: 1_000_000,
    description: 'Runs in flight of a process; further ones wait',
  }),
  MAX_RUNS_PER_ACCOUNT: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 1_000_000,
      description: 'The most of them that are one account’s; without it half of them',
    }),
  ),
  MAX_PROMPT_BYTES: Type.Optional(
    Type.Integer({
      minimum: 4_194_304,
      maximum: 1_099_511_627_776,
      description:
        'Bytes of the prompts of all runs in flight of a process, half of them one account’s, and as many of runs that wait; without it a part of the heap (`heap.prompts`). A prompt has at most a quarter of them',
    }),
  ),
  RATE_LIMIT_PER_SECOND: Type.Integer({
    default: 20_000,
    minimum: 1,
    maximum: 1_000_000,
    description:
      'Requests per second of an API key, on all processes together; beyond them 429 `rate_limited`',
  }),
};
