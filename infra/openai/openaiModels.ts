import type { ModelInfo } from '../../shared/ports/chatModel.ts';

/**
 * Context window and longest answer in tokens, as OpenAI documents them
 * (platform.openai.com/docs/models).
 */
const LIMITS: Record<string, [contextWindow: number, maxOutput: number]> = {
  'gpt-5': [400_000, 128_000],
  'gpt-5-mini': [400_000, 128_000],
  'gpt-5-nano': [400_000, 128_000],
  'gpt-4.1': [1_047_576, 32_768],
  'gpt-4.1-mini': [1_047_576, 32_768],
  'gpt-4.1-nano': [1_047_576, 32_768],
  'gpt-4o': [128_000, 16_384],
  'gpt-4o-mini': [128_000, 16_384],
  'o4-mini': [200_000, 100_000],
};

/** What is offered of the provider `openai` when no file names the models. */
export const openaiModels: readonly ModelInfo[] = Object.entries(LIMITS).map(
  ([id, [context_window, max_output_tokens]]) => ({
    id,
    provider: 'openai',
    upstream_model: id,
    context_window,
    max_output_tokens,
  }),
);
