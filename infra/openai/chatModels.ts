import type * as OpenAi from 'openai';
import type { Agent } from 'undici';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ChatRequest } from '../../shared/sessions/turns/chat.ts';
import type { ChatAnswer, ChatModels, ModelInfo } from '../../shared/ports/chatModel.ts';
import { parseAnswer } from './answer.ts';
import type { ResponseMemory } from './boundedBuffer.ts';
import { toModelError } from './modelErrors.ts';
import { pooledFetch, type CallOptions } from './pooledFetch.ts';
import { createRedactor } from './redact.ts';

/** An OpenAI-compatible server. Without a key no credentials are sent. */
export interface Provider {
  id: string;
  base_url: string;
  api_key?: string;
}

export interface ChatModelLimits {
  /** For one attempt, from sending to the last byte of the answer. */
  attemptTimeoutMs: number;
  /** How often a call is repeated after 429, 5xx or a failure before the answer began. */
  maxRetries: number;
  /** Connections to one provider. */
  maxConnections?: number;
}

interface ChatModelsOptions {
  providers: readonly Provider[];
  models: readonly ModelInfo[];
  limits: ChatModelLimits;
}

const DEFAULTS = {
  maxConnections: 256,
  connectTimeoutMs: 10_000,
};

interface Libraries {
  openai: typeof OpenAi;
  agent: Agent;
  inProgress: ResponseMemory;
}

/**
 * The libraries take a quarter of a second and tens of megabytes to load: not before the first
 * call.
 */
async function load({ limits }: ChatModelsOptions): Promise<Libraries> {
  const [openai, undici] = await Promise.all([import('openai'), import('undici')]);
  const agent = new undici.Agent({
    connections: limits.maxConnections ?? DEFAULTS.maxConnections,
    connect: { timeout: DEFAULTS.connectTimeoutMs },
    maxHeaderSize: LIMITS.model.headerBytes,
    // The time limit per attempt is the library's; undici's own would cut a slow model off at five
    // minutes.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  return { openai, agent, inProgress: { bytes: 0 } };
}

function createClient(
  provider: Provider,
  { openai, agent, inProgress }: Libraries,
  limits: ChatModelLimits,
): OpenAi.OpenAI {
  return new openai.OpenAI({
    baseURL: provider.base_url,
    apiKey: provider.api_key ?? 'none',
    ...(provider.api_key === undefined && { defaultHeaders: { Authorization: null } }),
    // The library would take these from the environment and send them to every provider.
    organization: null,
    project: null,
    timeout: limits.attemptTimeoutMs,
    maxRetries: limits.maxRetries,
    logLevel: 'off',
    fetch: pooledFetch(agent, inProgress),
  });
}

async function requestAnswer(
  client: OpenAi.OpenAI,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<ChatAnswer> {
  const body: unknown = await client.chat.completions.create(request, { signal });
  return parseAnswer(body, request.model);
}

/** The library would keep no bounds of a stream: it is given the whole (see pooledFetch). */
async function requestStream(
  client: OpenAi.OpenAI,
  request: ChatRequest,
  { signal, onDelta }: { signal: AbortSignal; onDelta: (text: string) => void },
): Promise<ChatAnswer> {
  let shown = false;
  const onText = (text: string): void => {
    shown = true;
    onDelta(text);
  };
  const options: CallOptions = { onText };
  const body: unknown = await client.post('/chat/completions', {
    body: { ...request, stream: true, stream_options: { include_usage: true } },
    signal,
    fetchOptions: options as object,
  });
  const answer = parseAnswer(body, request.model);
  // A provider that knows no streams has sent it in one piece.
  if (!shown && answer.content !== null) onDelta(answer.content);
  return answer;
}

/** The chat models port over the `openai` package: one client per provider, made on demand. */
export function createChatModels(
  options: ChatModelsOptions,
): ChatModels & { close(): Promise<void> } {
  const models = new Map(options.models.map((model) => [model.id, model]));
  const providers = new Map(options.providers.map((provider) => [provider.id, provider]));
  // Of every provider: one that is behind another's proxy may quote that one's key.
  const redact = createRedactor(options.providers.flatMap(({ api_key }) => api_key ?? []));
  const clients = new Map<string, OpenAi.OpenAI>();
  let libraries: Promise<Libraries> | undefined;

  function providerOf(modelId: string): Provider {
    const provider = providers.get(models.get(modelId)?.provider ?? '');
    if (provider) return provider;
    const named = JSON.stringify(modelId);
    throw new TurnlogError('model_not_supported', `The model ${named} is not configured.`);
  }

  function clientOf(provider: Provider, loaded: Libraries): OpenAi.OpenAI {
    const client = clients.get(provider.id) ?? createClient(provider, loaded, options.limits);
    clients.set(provider.id, client);
    return client;
  }

  return {
    list: () => options.models,
    find: (id) => models.get(id),
    async complete(modelId, request, signal, onDelta) {
      const provider = providerOf(modelId);
      const loaded = await (libraries ??= load(options));
      signal.throwIfAborted();
      try {
        const client = clientOf(provider, loaded);
        return await (onDelta
          ? requestStream(client, request, { signal, onDelta })
          : requestAnswer(client, request, signal));
      } catch (error) {
        // Whatever the library made of an abort, the caller gets the reason that it gave.
        signal.throwIfAborted();
        throw toModelError(error, loaded.openai, redact);
      }
    },
    async close() {
      const loaded = await libraries;
      await loaded?.agent.destroy();
    },
  };
}
