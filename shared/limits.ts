import { FEED_LIMITS } from './feed/limits.ts';
import { REPLAY_LIMITS } from './replays/limits.ts';
import { REQUEST_LIMITS } from './requests/limits.ts';
import { RUN_LIMITS } from './runs/limits.ts';
import { SEARCH_LIMITS } from './search/limits.ts';
import { STORE_LIMITS } from './eventlog/limits.ts';
import { TOOL_LIMITS } from './runs/toolLimits.ts';
import { TRANSPARENCY_LIMITS } from './transparency/limits.ts';
import { TURN_LIMITS } from './sessions/limits.ts';
import { WEBHOOK_LIMITS } from './webhooks/limits.ts';

/**
 * Every fixed bound on what a client, a tenant, a model or a provider can make grow, in one place.
 * Those that an operator sets are options (shared/config/). docs/limits.md says what happens beyond
 * each; a test compares the two.
 */
export const LIMITS = {
  ...REQUEST_LIMITS,
  ...RUN_LIMITS,
  ...STORE_LIMITS,
  ...SEARCH_LIMITS,
  ...TOOL_LIMITS,
  ...FEED_LIMITS,
  ...TRANSPARENCY_LIMITS,
  ...TURN_LIMITS,
  ...WEBHOOK_LIMITS,
  ...REPLAY_LIMITS,
} as const;
