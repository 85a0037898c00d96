import type { Feature } from '../domain/feature.ts';
import { SEARCH_LIMITS } from './limits.ts';

/** The index is the sessions feature's table `turn_words`. */
export const search = { limits: SEARCH_LIMITS } as const satisfies Feature;
