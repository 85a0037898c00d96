import type { Feature } from '../domain/feature.ts';
import { RUN_LIMITS } from './limits.ts';

/** Runs write events of sessions. */
export const runs = {
  errors: ['model_error', 'model_overloaded', 'model_timeout', 'tool_error', 'turn_interrupted'],
  limits: RUN_LIMITS,
} as const satisfies Feature;
