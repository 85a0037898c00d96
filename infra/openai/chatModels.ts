import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type * as Undici from 'undici';
import { Type } from '../../shared/domain/jsonSchema.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { MemoryLedger } from '../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ChatModels, ModelInfo } from '../../shared/ports/chatModel.ts';
import { lazyValidator } from '../../shared/lib/validation/validation.ts';
import { toStorableText } from './answers/answer.ts';
import { requestCompletion } from './completions.ts';
import { toModelError } from './modelErrors.ts';
import { Agent, buildConnector } from '../lib/http/dispatchers.ts';
import { limitInformationalResponses } from '../lib/http/informationalResponses.ts';
import { buildLimitedConnector } from '../lib/http/uncountedBytes.ts';
import {
  openProvider,
  type AttemptLimits,
  type OpenProvider,
  type Provider,
} from './openProvider.ts';
import { sendRequest } from './providerRequest.ts';
import { createRequestForms } from './requestForms.ts';

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
 * The models in a provider's answer to `GET /models`, in its order, up to the limit; without those
 * whose ids no agent can have. Those in `configuredModels` keep the limits that are stated there. Throws
 * `model_error` for an answer without models.
 */
export function parseModelList(
  body: unknown,
  provider: string,
  configuredModels: readonly ModelInfo[],
): ModelInfo[] {
  const listed = isModelList()(body) ? body.data : [];
  const ids = new Set<string>();
  const models = listed.flatMap(({ id, ...sizes }): ModelInfo[] => {
    const isUsable = id !== '' && id.length <= LIMITS.model.labelChars && toStorableText(id) === id;
    if (!isUsable || ids.has(id)) return [];
    ids.add(id);
    const documented = configuredModels.find((model) => model.id === id);
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

export interface ChatModelLimits extends AttemptLimits {
  /**
   * The most connections to one provider, enough for all calls at a time: beyond it, calls wait in
   * the order of their arrival, whatever their account.
   */
  maxConnections: number;
}

interface ChatModelsOptions {
  providers: readonly Provider[];
  models: readonly ModelInfo[];
  limits: ChatModelLimits;
  /** Counts the answers that are being read. */
  memory: MemoryLedger;
  /** Servers inside this process by host name: what opens a connection to each. */
  localServers?: ReadonlyMap<string, () => Duplex>;
}

/** Of calls that are made for no account. */
const NO_ACCOUNT = { account_id: '' };

const DEFAULTS = {
  connectTimeoutMs: 10_000,
  listTimeoutMs: 5_000,
};

/** Connects to local servers over streams of this process, and to all others over the network. */
function createConnector(
  localServers: ChatModelsOptions['localServers'],
): Undici.buildConnector.connector {
  const connectOverNetwork = buildLimitedConnector(buildConnector, {
    timeout: DEFAULTS.connectTimeoutMs,
  });
  return (target, connected) => {
    const connectLocally = localServers?.get(target.hostname);
    // The client waits for the connection only after this call.
    if (connectLocally) setImmediate(() => connected(null, connectLocally() as Socket));
    else connectOverNetwork(target, connected);
  };
}

function createAgent({ limits, localServers }: ChatModelsOptions): Undici.Dispatcher {
  const agent = new Agent({
    connections: limits.maxConnections,
    connect: createConnector(localServers),
    allowH2: false,
    maxHeaderSize: LIMITS.model.headerBytes,
    // Each attempt has a time limit. undici's own limits would cut off a slow model after five
    // minutes.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return agent.compose(limitInformationalResponses);
}

interface OpenChatModels extends ChatModels {
  /**
   * Asks a provider for its models, and offers them instead of the configured ones. Throws the errors
   * of `complete`.
   */
  offerModelsOf(providerId: string, signal: AbortSignal): Promise<void>;
  /**
   * Requests one completion, which the first run would otherwise wait for: it compiles the code and
   * the validators of a call. Throws the errors of `complete`.
   */
  warmUp(model: Pick<ModelInfo, 'provider' | 'upstream_model'>): Promise<void>;
  close(): Promise<void>;
}

/**
 * The chat models port over undici. The `openai` package repeats failed requests: see sendRequest.
 */
export function createChatModels(options: ChatModelsOptions): OpenChatModels {
  let list = options.models;
  let models = new Map(list.map((model) => [model.id, model]));
  const providers = new Map(options.providers.map((provider) => [provider.id, provider]));
  const opened = new Map<string, OpenProvider>();
  const forms = createRequestForms();
  const connection = { agent: createAgent(options), ledger: options.memory };

  function providerOf(modelId: string): Provider {
    const provider = providers.get(models.get(modelId)?.provider ?? '');
    if (provider) return provider;
    const quotedId = JSON.stringify(modelId);
    throw new TurnlogError('model_not_supported', `The model ${quotedId} is not configured.`);
  }

  function open(provider: Provider): OpenProvider {
    const existing = opened.get(provider.id);
    if (existing) return existing;
    const created = openProvider(provider, options.limits, connection);
    opened.set(provider.id, created);
    return created;
  }

  return {
    list: () => list,
    async offerModelsOf(providerId, signal) {
      const call = { caller: NO_ACCOUNT, signal, timeoutMs: DEFAULTS.listTimeoutMs, maxRetries: 0 };
      const request = { method: 'GET', path: '/models', body: null } as const;
      try {
        const body = await sendRequest(open(providers.get(providerId)!), request, call);
        list = parseModelList(body, providerId, options.models);
      } catch (error) {
        throw toModelError(error);
      }
      models = new Map(list.map((model) => [model.id, model]));
    },
    async warmUp({ provider, upstream_model }) {
      const messages = [{ role: 'user' as const, content: 'Hello' }];
      await requestCompletion(
        open(providers.get(provider)!),
        { model: upstream_model, messages },
        { ...NO_ACCOUNT, signal: AbortSignal.timeout(options.limits.attemptTimeoutMs) },
        true,
      );
    },
    find: (id) => models.get(id),
    async complete(modelId, request, signal, caller) {
      const provider = providerOf(modelId);
      signal.throwIfAborted();
      try {
        const to = open(provider);
        return await forms.send(modelId, provider, request, (sent, streamOptions) =>
          requestCompletion(to, sent, { ...caller, signal }, streamOptions),
        );
      } catch (error) {
        // The library converts aborts to its own errors. The caller gets its own abort reason.
        signal.throwIfAborted();
        throw toModelError(error);
      }
    },
    async close() {
      await connection.agent.destroy();
    },
  };
}
