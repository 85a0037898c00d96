import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type * as OpenAi from 'openai';
import type * as Undici from 'undici';
import { Type } from '../../shared/domain/jsonSchema.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { MemoryLedger } from '../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ChatModels, ModelInfo } from '../../shared/ports/chatModel.ts';
import { lazyValidator } from '../../shared/lib/validation/validation.ts';
import type { Connection } from './attempt.ts';
import { requestCompletion, type OpenProvider } from './completions.ts';
import { toModelError } from './modelErrors.ts';
import { Agent, buildConnector } from '../lib/dispatchers.ts';
import { limitInformationalResponses } from '../lib/informationalResponses.ts';
import { pooledFetch } from './pooledFetch.ts';
import { createRequestForms, type ProviderQuirks, type RequestForms } from './requestForms.ts';

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

/** An OpenAI-compatible server. Without a key no credentials are sent. */
export interface Provider extends ProviderQuirks {
  id: string;
  base_url: string;
  api_key?: string;
}

export interface ChatModelLimits {
  /**
   * The time limit of one attempt, from sending to the last byte of the answer, in milliseconds.
   */
  attemptTimeoutMs: number;
  /** The most retries of a call after 429, 5xx or a failure before the answer began. */
  maxRetries: number;
  /** The most connections to one provider. */
  maxConnections?: number;
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

const DEFAULTS = {
  maxConnections: 256,
  connectTimeoutMs: 10_000,
  listTimeoutMs: 5_000,
};

interface Libraries {
  openai: typeof OpenAi;
  agent: Undici.Dispatcher;
  forms: RequestForms;
}

/** Connects to local servers over streams of this process, and to all others over the network. */
function createConnector(
  localServers: ChatModelsOptions['localServers'],
): Undici.buildConnector.connector {
  const connectOverNetwork = buildConnector({ timeout: DEFAULTS.connectTimeoutMs });
  return (target, connected) => {
    const connectLocally = localServers?.get(target.hostname);
    // The client waits for the connection only after this call.
    if (connectLocally) setImmediate(() => connected(null, connectLocally() as Socket));
    else connectOverNetwork(target, connected);
  };
}

/** Loads the library, which takes up to a tenth of a second and ten megabytes. */
async function load({ limits, localServers }: ChatModelsOptions): Promise<Libraries> {
  const openai = await import('openai');
  const agent = new Agent({
    connections: limits.maxConnections ?? DEFAULTS.maxConnections,
    connect: createConnector(localServers),
    maxHeaderSize: LIMITS.model.headerBytes,
    // The library enforces the time limit per attempt. undici's own limits would cut off a slow
    // model after five minutes.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  const limited = agent.compose(limitInformationalResponses);
  return { openai, agent: limited, forms: createRequestForms(openai) };
}

function createClient(
  provider: Provider,
  { OpenAI }: typeof OpenAi,
  limits: ChatModelLimits,
  connection: Connection,
): OpenAi.OpenAI {
  return new OpenAI({
    baseURL: provider.base_url,
    apiKey: provider.api_key ?? 'none',
    ...(provider.api_key === undefined && { defaultHeaders: { Authorization: null } }),
    // Otherwise the library would take these from the environment and send them to every provider.
    organization: null,
    project: null,
    timeout: limits.attemptTimeoutMs,
    maxRetries: limits.maxRetries,
    logLevel: 'off',
    fetch: pooledFetch(connection),
  });
}

interface LoadableChatModels extends ChatModels {
  /**
   * Asks a provider for its models, and offers them instead of the configured ones. Throws the errors
   * of `complete`.
   */
  offerModelsOf(providerId: string, signal: AbortSignal): Promise<void>;
  /**
   * Loads the libraries now instead of at the first call: loading them is one step of the event loop,
   * which no request should wait for.
   */
  load(): Promise<void>;
  /**
   * Requests one completion, which the first run would otherwise wait for: it compiles the code and
   * the validators of a call. Throws the errors of `complete`.
   */
  warmUp(model: Pick<ModelInfo, 'provider' | 'upstream_model'>): Promise<void>;
  close(): Promise<void>;
}

/**
 * The chat models port over the `openai` package, with one client per provider, created on demand.
 */
export function createChatModels(options: ChatModelsOptions): LoadableChatModels {
  let list = options.models;
  let models = new Map(list.map((model) => [model.id, model]));
  const providers = new Map(options.providers.map((provider) => [provider.id, provider]));
  const opened = new Map<string, OpenProvider>();
  let libraries: Promise<Libraries> | undefined;

  function providerOf(modelId: string): Provider {
    const provider = providers.get(models.get(modelId)?.provider ?? '');
    if (provider) return provider;
    const quotedId = JSON.stringify(modelId);
    throw new TurnlogError('model_not_supported', `The model ${quotedId} is not configured.`);
  }

  function open(provider: Provider, { openai, agent }: Libraries): OpenProvider {
    const known = opened.get(provider.id);
    if (known) return known;
    const { limits, memory: ledger } = options;
    const connection = { agent, ledger };
    const client = createClient(provider, openai, limits, connection);
    const created = { client, connection, timeoutMs: limits.attemptTimeoutMs };
    opened.set(provider.id, created);
    return created;
  }

  const loadOnce = (): Promise<Libraries> => (libraries ??= load(options));

  return {
    list: () => list,
    async offerModelsOf(providerId, signal) {
      const loaded = await loadOnce();
      const { client } = open(providers.get(providerId)!, loaded);
      const settings = { signal, timeout: DEFAULTS.listTimeoutMs, maxRetries: 0 };
      try {
        list = parseModelList(await client.get('/models', settings), providerId, options.models);
      } catch (error) {
        throw toModelError(error, loaded.openai);
      }
      models = new Map(list.map((model) => [model.id, model]));
    },
    async load() {
      await loadOnce();
    },
    async warmUp({ provider, upstream_model }) {
      const loaded = await loadOnce();
      const messages = [{ role: 'user' as const, content: 'Hello' }];
      await requestCompletion(
        open(providers.get(provider)!, loaded),
        { model: upstream_model, messages },
        { account_id: '', signal: AbortSignal.timeout(options.limits.attemptTimeoutMs) },
        true,
      );
    },
    find: (id) => models.get(id),
    async complete(modelId, request, signal, caller) {
      const provider = providerOf(modelId);
      const loaded = await loadOnce();
      signal.throwIfAborted();
      try {
        const to = open(provider, loaded);
        return await loaded.forms.send(modelId, provider, request, (sent, streamOptions) =>
          requestCompletion(to, sent, { ...caller, signal }, streamOptions),
        );
      } catch (error) {
        // The library converts aborts to its own errors. The caller gets its own abort reason.
        signal.throwIfAborted();
        throw toModelError(error, loaded.openai);
      }
    },
    async close() {
      const loaded = await libraries;
      await loaded?.agent.destroy();
    },
  };
}
