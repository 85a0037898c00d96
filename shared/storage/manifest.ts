import type { Feature } from '../domain/feature.ts';
import { STORAGE_LIMITS } from './limits.ts';
import { STORAGE_TABLES } from './tables.ts';

/** Events of every kind add to this feature's table. */
export const storage = {
  tables: STORAGE_TABLES,
  errors: ['quota_exceeded', 'storage_full'],
  limits: STORAGE_LIMITS,
} as const satisfies Feature;
