import { defineStream, type Feature } from '../domain/feature.ts';
import { logEventSchemas } from './events.ts';

/** Without a projection: the event concerns only followers of the log. */
export const restoredLogs = {
  stream: defineStream('log', logEventSchemas, {
    alwaysRecorded: ['log.restore_accepted.v1', 'log.tree_declared.v1', 'log.tree_replaced.v1'],
  }),
  errors: ['log_restored'],
} as const satisfies Feature;
