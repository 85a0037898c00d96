import type { Feature } from '../domain/feature.ts';
import { RUN_LIMITS } from './limits.ts';

/** Runs write the events of sessions, so this feature has no stream. */
export const runs = {
  errors: ['model_error', 'model_overloaded', 'model_timeout', 'tool_error', 'turn_interrupted'],
  limits: RUN_LIMITS,
} as const satisfies Feature;
