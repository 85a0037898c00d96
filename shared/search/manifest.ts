import type { Feature } from '../domain/feature.ts';
import { SEARCH_LIMITS } from './limits.ts';

/** The index is the table `turn_words` of sessions. */
export const search = { limits: SEARCH_LIMITS } as const satisfies Feature;
