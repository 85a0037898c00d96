import { Type } from '../../shared/domain/jsonSchema.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { lazyValidator } from '../../shared/lib/validation/validation.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ModelInfo } from '../../shared/ports/chatModel.ts';

const size = Type.Optional(Type.Unknown());

/** The parts of a list of models that are read. Servers name the context window differently. */
const ModelList = Type.Object({
  data: Type.Array(
    Type.Object({
      id: Type.String(),
      /** vLLM. */
      max_model_len: size,
      /** OpenRouter. */
      context_length: size,
      /** Groq. */
      context_window: size,
      /** llama.cpp. */
      meta: Type.Optional(Type.Unknown()),
    }),
  ),
});
const isModelList = lazyValidator(ModelList);

/** Assumed where neither the server nor this release knows the context window. */
const DEFAULT_CONTEXT_WINDOW = 8_192;

const isSize = (value: unknown): value is number =>
  Number.isInteger(value) && (value as number) > 0 && (value as number) <= LIMITS.model.tokens;

/**
 * The models in a provider's answer to `GET /models`, in its order, up to the limit. `known` are
 * models whose limits this release knows. Throws `model_error` for an answer without models.
 */
export function parseModelList(
  body: unknown,
  provider: string,
  known: readonly ModelInfo[],
): ModelInfo[] {
  const listed = isModelList()(body) ? body.data : [];
  const ids = new Set<string>();
  const models = listed.flatMap(({ id, ...sizes }): ModelInfo[] => {
    if (id === '' || id.length > LIMITS.model.labelChars || ids.has(id)) return [];
    ids.add(id);
    const documented = known.find((model) => model.id === id);
    if (documented) return [documented];
    const { n_ctx, n_ctx_train } = (sizes.meta ?? {}) as Record<string, unknown>;
    const { max_model_len, context_length, context_window } = sizes;
    const stated = [max_model_len, context_length, context_window, n_ctx, n_ctx_train];
    const window = stated.find(isSize) ?? DEFAULT_CONTEXT_WINDOW;
    return [{ id, provider, upstream_model: id, context_window: window }];
  });
  if (models.length === 0)
    throw new TurnlogError('model_error', 'The model provider lists no models.');
  return models.slice(0, LIMITS.model.listedModels);
}
