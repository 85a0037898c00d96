import type { Feature } from '../domain/feature.ts';
import { TRANSPARENCY_LIMITS } from './limits.ts';

export const transparency = {
  errors: ['proof_invalid', 'proof_pending'],
  limits: TRANSPARENCY_LIMITS,
} as const satisfies Feature;
