import { FEED_LIMITS } from './limits/feed.ts';
import { REPLAY_LIMITS } from './limits/replays.ts';
import { REQUEST_LIMITS } from './limits/requests.ts';
import { RUN_LIMITS } from './limits/runs.ts';
import { SEARCH_LIMITS } from './limits/search.ts';
import { STORE_LIMITS } from './limits/stores.ts';
import { TOOL_LIMITS } from './limits/tools.ts';
import { TRANSPARENCY_LIMITS } from './limits/transparency.ts';
import { TURN_LIMITS } from './limits/turns.ts';
import { WEBHOOK_LIMITS } from './limits/webhooks.ts';

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
