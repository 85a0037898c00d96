import type { Feature } from '../domain/feature.ts';
import { FEED_LIMITS } from './limits.ts';

export const feed = {
  errors: ['position_unknown'],
  limits: FEED_LIMITS,
} as const satisfies Feature;
