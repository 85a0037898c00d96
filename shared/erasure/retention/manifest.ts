import { defineStream, type Feature } from '../../domain/feature.ts';
import { retentionEventSchemas } from './events.ts';

/** Without a projection: retention reads its streams itself. */
export const retentions = {
  stream: defineStream('retention', retentionEventSchemas, {
    alwaysRecorded: [
      'retention.time_kept.v1',
      'retention.time_confirmed.v1',
      'retention.erasures_confirmed.v1',
    ],
  }),
} as const satisfies Feature;
