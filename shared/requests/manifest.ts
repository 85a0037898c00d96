import { defineStream, type Feature } from '../domain/feature.ts';
import { requestEventSchemas } from './events.ts';
import { REQUEST_LIMITS } from './limits.ts';

/** No projection: a request that is sent again reads the stream itself. */
export const requests = {
  stream: defineStream('request', requestEventSchemas, { opening: 'request.begun.v1' }),
  errors: ['idempotency_conflict', 'idempotency_in_progress'],
  limits: REQUEST_LIMITS,
} as const satisfies Feature;
