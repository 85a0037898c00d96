import { defineStream, type Feature } from '../../domain/feature.ts';
import { retentionEventSchemas } from './events.ts';

/** Without a projection: retention reads its streams itself. */
export const retentions = {
  stream: defineStream('retention', retentionEventSchemas, {}),
} as const satisfies Feature;
