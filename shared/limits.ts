import { STORE_LIMITS } from './eventlog/limits.ts';
import { FEATURE_LIMITS } from './features.ts';

/**
 * Every fixed limit on what a client, an account, a model or a provider can make grow, in one place.
 * Limits that an operator sets are options (shared/lib/config/). docs/limits.md says what happens
 * beyond each limit; a test compares the two.
 */
export const LIMITS = { ...STORE_LIMITS, ...FEATURE_LIMITS };
