import { isIPv4 } from 'node:net';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { ModelInfo } from '../../shared/ports/chatModel.ts';
import { requireNoProblems, type Problems } from '../lib/optionFile.ts';
import type { Provider } from './openProvider.ts';
import { readModelsFile, type ModelsFile } from './modelsFile.ts';

/**
 * Context window and longest answer in tokens, from OpenAI's documentation
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

/** The models of the provider `openai` when no file names the models. */
const openaiModels: readonly ModelInfo[] = Object.entries(LIMITS).map(
  ([id, [context_window, max_output_tokens]]) => ({
    id,
    provider: 'openai',
    upstream_model: id,
    context_window,
    max_output_tokens,
  }),
);

const OPENAI_BASE_URL = 'https://api.openai.com/v1';

export interface RegistryOptions {
  modelsFile?: string | undefined;
  openaiApiKey?: string | undefined;
  openaiBaseUrl?: string | undefined;
  /** The environment variables, which hold the keys that the file names. */
  env: Readonly<Record<string, string | undefined>>;
  /** The base URL of the built-in server, which is the provider `offline`. */
  offlineBaseUrl: string;
}

interface Registry {
  providers: Provider[];
  models: ModelInfo[];
  /** The provider whose own models replace `models` once it lists them. */
  listedBy?: string;
}

/**
 * The context window fits the longest instruction and input of the API, because nothing is counted.
 */
export const offlineModel: ModelInfo = {
  id: 'offline-echo',
  provider: 'offline',
  upstream_model: 'offline-echo',
  context_window: 1_048_576,
};

const provider = (id: string, base_url: string, api_key: string | undefined): Provider => ({
  id,
  base_url,
  ...(api_key ? { api_key } : {}),
});

/** True for a URL that would send the key unencrypted over a network. */
function isPlainHttp(baseUrl: string): boolean {
  const url = URL.parse(baseUrl);
  if (url?.protocol !== 'http:') return false;
  const { hostname } = url;
  const loopback =
    hostname === '[::1]' ||
    /(?:^|\.)localhost\.?$/.test(hostname) ||
    (isIPv4(hostname) && hostname.startsWith('127.'));
  return !loopback;
}

const PLAIN_HTTP = 'would send the key over plain http to another host: use https';

/** Throws `configuration_invalid` if OPENAI_BASE_URL would expose the key. */
function requireEncryptedKey({ openaiApiKey, openaiBaseUrl }: RegistryOptions): void {
  if (openaiApiKey && openaiBaseUrl && isPlainHttp(openaiBaseUrl))
    throw new TurnlogError(
      'configuration_invalid',
      `OPENAI_BASE_URL ${PLAIN_HTTP}, or name the provider openai with allow_plain_http in MODELS_FILE.`,
      { details: { OPENAI_BASE_URL: { message: PLAIN_HTTP, path: 'OPENAI_BASE_URL' } } },
    );
}

/** The providers that exist without a file. */
function defaultProviders({
  openaiApiKey,
  openaiBaseUrl,
  offlineBaseUrl,
}: RegistryOptions): Provider[] {
  const offline = provider('offline', offlineBaseUrl, undefined);
  return openaiApiKey || openaiBaseUrl
    ? [offline, provider('openai', openaiBaseUrl ?? OPENAI_BASE_URL, openaiApiKey)]
    : [offline];
}

/** The currency of prices that name none. */
const DEFAULT_CURRENCY = 'USD';

/** Checks that all prices are in one currency, because costs are added up. */
function currencyProblems({ models }: ModelsFile): Problems {
  const currencies = models.map(({ price }) => price && (price.currency ?? DEFAULT_CURRENCY));
  const first = currencies.find((currency) => currency !== undefined);
  return Object.fromEntries(
    currencies.flatMap((currency, index) =>
      currency === undefined || currency === first
        ? []
        : [[`/models/${index}/price/currency`, `must be ${first}, as that of the first price`]],
    ),
  );
}

function problemsOf(
  file: ModelsFile,
  providers: ReadonlyMap<string, Provider>,
  env: RegistryOptions['env'],
): Problems {
  const problems = currencyProblems(file);
  for (const [id, { base_url, api_key_env, allow_plain_http }] of Object.entries(
    file.providers ?? {},
  )) {
    if (api_key_env && !allow_plain_http && isPlainHttp(base_url))
      problems[`/providers/${id}/base_url`] = `${PLAIN_HTTP}, or set allow_plain_http`;
    if (id === 'offline') problems['/providers/offline'] = 'is built in and can not be set';
    if (api_key_env && !env[api_key_env])
      problems[`/providers/${id}/api_key_env`] =
        `names ${api_key_env}, which is not set in the environment`;
  }
  const modelIds = file.models.map(({ id }) => id);
  for (const [index, model] of file.models.entries()) {
    const { fallbacks = [] } = model;
    for (const [fallbackIndex, id] of fallbacks.entries()) {
      const path = `/models/${index}/fallbacks/${fallbackIndex}`;
      if (id === model.id) problems[path] = 'names the model itself';
      else if (!modelIds.includes(id))
        problems[path] = `names ${JSON.stringify(id)}, which is no model of the file`;
      else if (fallbacks.indexOf(id) !== fallbackIndex)
        problems[path] = `is there twice: ${JSON.stringify(id)}`;
    }
    if (!providers.has(model.provider)) {
      problems[`/models/${index}/provider`] =
        `names ${JSON.stringify(model.provider)}, which is none of ${[...providers.keys()].join(', ')}`;
    }
    if (modelIds.indexOf(model.id) !== index)
      problems[`/models/${index}/id`] = `is there twice: ${JSON.stringify(model.id)}`;
    if ((model.max_output_tokens ?? 0) >= model.context_window)
      problems[`/models/${index}/max_output_tokens`] = 'must be less than context_window';
  }
  return problems;
}

/**
 * Loads the providers and models. A file names the models, and providers in addition to `openai`
 * (available when OPENAI_API_KEY or OPENAI_BASE_URL is set) and `offline`. Without a file, the
 * models are OpenAI's if `openai` is available, otherwise only `offline-echo`. A server at
 * OPENAI_BASE_URL lists its models itself. A key is sent over
 * plain http only to this machine, unless the file allows it. Throws `configuration_invalid`, which
 * lists every problem of the file.
 */
export async function loadRegistry(options: RegistryOptions): Promise<Registry> {
  const defaults = defaultProviders(options);
  if (!options.modelsFile) {
    requireEncryptedKey(options);
    return {
      providers: defaults,
      models: defaults.length > 1 ? [...openaiModels] : [offlineModel],
      ...(options.openaiBaseUrl && { listedBy: 'openai' }),
    };
  }
  const file = await readModelsFile(options.modelsFile);
  if (!file.providers?.['openai']) requireEncryptedKey(options);
  const providers = new Map(defaults.map((entry) => [entry.id, entry]));
  for (const [id, entry] of Object.entries(file.providers ?? {})) {
    const { base_url, api_key_env, allow_plain_http: _, ...quirks } = entry;
    const api_key = api_key_env && options.env[api_key_env];
    if (id !== 'offline') providers.set(id, { ...provider(id, base_url, api_key), ...quirks });
  }
  const problems = problemsOf(file, providers, options.env);
  requireNoProblems({ option: 'MODELS_FILE', file: options.modelsFile }, problems);
  return {
    providers: [...providers.values()],
    models: file.models.map(({ price, ...model }) => ({
      ...model,
      upstream_model: model.upstream_model ?? model.id,
      ...(price && { price: { currency: DEFAULT_CURRENCY, ...price } }),
    })),
  };
}
