import { defineStream, type Feature } from '../domain/feature.ts';
import { requestEventSchemas } from './events.ts';
import { REQUEST_LIMITS } from './limits.ts';

/** Without a projection: a repeated request reads the stream itself. */
export const requests = {
  stream: defineStream('request', requestEventSchemas, { opening: 'request.begun.v1' }),
  errors: ['idempotency_conflict', 'idempotency_in_progress'],
  limits: REQUEST_LIMITS,
} as const satisfies Feature;
