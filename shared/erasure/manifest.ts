import type { Feature } from '../domain/feature.ts';
import { ERASURE_LIMITS } from './limits.ts';
import { ERASURE_TABLES } from './tables.ts';

export const erasure = {
  tables: ERASURE_TABLES,
  errors: ['erasure_refused', 'erasure_not_found'],
  limits: ERASURE_LIMITS,
} as const satisfies Feature;
