import { STORE_LIMITS } from './eventlog/limits.ts';
import { FEATURE_LIMITS } from './features.ts';

/**
 * Every fixed limit on what a client, an account, a model or a provider can make grow, in one place.
 * Limits that an operator sets are options (shared/lib/config/). Their comments are the
 * source of docs/limits.md (`npm run limits`): `@beyond` says what clients or operators meet beyond
 * a limit that concerns them.
 */
export const LIMITS = { ...STORE_LIMITS, ...FEATURE_LIMITS };
