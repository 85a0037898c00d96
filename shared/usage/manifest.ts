import type { Feature } from '../domain/feature.ts';
import { USAGE_TABLES } from './tables.ts';

/** Events of sessions add to this feature's table. */
export const usage = {
  tables: USAGE_TABLES,
  owners: { usage: 'account_id' },
} as const satisfies Feature;
