import type { Feature } from '../domain/feature.ts';
import { CHAT_TOKEN_LIMITS } from './limits.ts';

export const chatTokens = { limits: CHAT_TOKEN_LIMITS } as const satisfies Feature;
