import type * as OpenAi from 'openai';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type * as Undici from 'undici';
import { writeJson } from '../../shared/eventlog/canonicalJson.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { MemoryLedger } from '../../shared/lib/memory/ledger.ts';
import { LIMITS } from '../../shared/limits.ts';
import type { ChatRequest } from '../../shared/sessions/turns/chat.ts';
import type {
  ChatAnswer,
  ChatModels,
  ModelCaller,
  ModelInfo,
} from '../../shared/ports/chatModel.ts';
import { parseAnswer } from './answers/answer.ts';
import { toModelError } from './modelErrors.ts';
import { pooledFetch, type CallOptions } from './pooledFetch.ts';
import { parseModelList } from './providerModels.ts';
import { createRequestForms, type ProviderQuirks, type RequestForms } from './requestForms.ts';

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
  { buildConnector }: typeof Undici,
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

/** Loads the libraries, which takes up to a tenth of a second and tens of megabytes. */
async function load({ limits, localServers }: ChatModelsOptions): Promise<Libraries> {
  const [openai, undici, { limitInformationalResponses }] = await Promise.all([
    import('openai'),
    import('undici'),
    import('../lib/informationalResponses.ts'),
  ]);
  const agent = new undici.Agent({
    connections: limits.maxConnections ?? DEFAULTS.maxConnections,
    connect: createConnector(undici, localServers),
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
  { openai, agent }: Libraries,
  { limits, memory }: ChatModelsOptions,
): OpenAi.OpenAI {
  return new openai.OpenAI({
    baseURL: provider.base_url,
    apiKey: provider.api_key ?? 'none',
    ...(provider.api_key === undefined && { defaultHeaders: { Authorization: null } }),
    // Otherwise the library would take these from the environment and send them to every provider.
    organization: null,
    project: null,
    timeout: limits.attemptTimeoutMs,
    maxRetries: limits.maxRetries,
    logLevel: 'off',
    fetch: pooledFetch(agent, memory),
  });
}

/** What the library sends as it is: it would serialize a prompt of megabytes in one step. */
interface EncodedBody {
  body: Buffer;
  headers: { 'content-type': 'application/json' };
}

async function encodeBody(request: object, accountId: string): Promise<EncodedBody> {
  const pieces: Buffer[] = [];
  await writeJson(request, { accountId, write: (text) => void pieces.push(Buffer.from(text)) });
  return { body: Buffer.concat(pieces), headers: { 'content-type': 'application/json' } };
}

async function requestAnswer(
  client: OpenAi.OpenAI,
  request: ChatRequest,
  { signal, account_id }: ModelCaller & { signal: AbortSignal },
): Promise<ChatAnswer> {
  const options: CallOptions = { caller: { account_id } };
  const fetchOptions = options as object;
  const body: unknown = await client.post('/chat/completions', {
    ...(await encodeBody(request, account_id)),
    signal,
    fetchOptions,
  });
  return parseAnswer(body, request.model);
}

type StreamCaller = ModelCaller & Required<Pick<ModelCaller, 'onDelta'>>;

/**
 * The library does not limit the size of a stream, so it gets the whole answer at once (see
 * pooledFetch).
 */
async function requestStream(
  client: OpenAi.OpenAI,
  request: ChatRequest,
  { signal, account_id, onDelta, onReasoning }: StreamCaller & { signal: AbortSignal },
  streamOptions: boolean,
): Promise<ChatAnswer> {
  let hasShownText = false;
  const show = (text: string): void => {
    hasShownText = true;
    onDelta(text);
  };
  let hasShownReasoning = false;
  const showReasoning = (text: string): void => {
    hasShownReasoning = true;
    onReasoning?.(text);
  };
  const caller = { account_id, onDelta: show, onReasoning: showReasoning };
  const options: CallOptions = { caller };
  const body: unknown = await client.post('/chat/completions', {
    ...(await encodeBody(
      {
        ...request,
        stream: true,
        ...(streamOptions && { stream_options: { include_usage: true } }),
      },
      account_id,
    )),
    signal,
    fetchOptions: options as object,
  });
  const answer = parseAnswer(body, request.model);
  // A provider without streaming has sent the answer in one piece.
  if (!hasShownReasoning && answer.reasoning) onReasoning?.(answer.reasoning);
  if (!hasShownText && answer.content !== null) onDelta(answer.content);
  return answer;
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
  close(): Promise<void>;
}

/**
 * The chat models port over the `openai` package, with one client per provider, created on demand.
 */
export function createChatModels(options: ChatModelsOptions): LoadableChatModels {
  let list = options.models;
  let models = new Map(list.map((model) => [model.id, model]));
  const providers = new Map(options.providers.map((provider) => [provider.id, provider]));
  const clients = new Map<string, OpenAi.OpenAI>();
  let libraries: Promise<Libraries> | undefined;

  function providerOf(modelId: string): Provider {
    const provider = providers.get(models.get(modelId)?.provider ?? '');
    if (provider) return provider;
    const quotedId = JSON.stringify(modelId);
    throw new TurnlogError('model_not_supported', `The model ${quotedId} is not configured.`);
  }

  function clientOf(provider: Provider, loaded: Libraries): OpenAi.OpenAI {
    const client = clients.get(provider.id) ?? createClient(provider, loaded, options);
    clients.set(provider.id, client);
    return client;
  }

  const loadOnce = (): Promise<Libraries> => (libraries ??= load(options));

  return {
    list: () => list,
    async offerModelsOf(providerId, signal) {
      const loaded = await loadOnce();
      const client = clientOf(providers.get(providerId)!, loaded);
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
    find: (id) => models.get(id),
    async complete(modelId, request, signal, { account_id, onDelta, onReasoning }) {
      const provider = providerOf(modelId);
      const loaded = await loadOnce();
      signal.throwIfAborted();
      try {
        const client = clientOf(provider, loaded);
        return await loaded.forms.send(modelId, provider, request, (sent, streamOptions) =>
          onDelta
            ? requestStream(
                client,
                sent,
                { signal, account_id, onDelta, onReasoning },
                streamOptions,
              )
            : requestAnswer(client, sent, { signal, account_id }),
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
