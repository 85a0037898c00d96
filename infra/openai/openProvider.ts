import type { OpenAI } from 'openai';
import type { Connection, RequestHead } from './attempt.ts';
import { pooledFetch } from './pooledFetch.ts';
import type { ProviderQuirks } from './requestForms.ts';

/** An OpenAI-compatible server. Without a key no credentials are sent. */
export interface Provider extends ProviderQuirks {
  id: string;
  base_url: string;
  api_key?: string;
}

export interface AttemptLimits {
  /**
   * The time limit of one attempt, from sending to the last byte of the answer, in milliseconds.
   */
  attemptTimeoutMs: number;
  /** The most retries of a call after 429, 5xx or a failure before the answer began. */
  maxRetries: number;
}

/** A provider that is in use. */
export interface OpenProvider {
  connection: Connection;
  /** The time limit of one attempt, in milliseconds. */
  timeoutMs: number;
  /** The address and the headers of a request to a path such as `/models`. */
  head(method: 'GET' | 'POST', path: string): RequestHead;
  /** The library's client, which repeats requests and throws the errors of their failures. */
  client(): Promise<OpenAI>;
}

/** The headers of every request, which ask for no compression. */
function headersOf({ api_key }: Provider): readonly string[] {
  const common = ['accept', 'application/json', 'accept-encoding', 'identity'];
  const json = ['content-type', 'application/json', 'user-agent', 'Turnlog'];
  const credentials = api_key === undefined ? [] : ['authorization', `Bearer ${api_key.trim()}`];
  return [...common, ...json, ...credentials];
}

/**
 * Loads the library, which takes 70 ms of the event loop and 8 MB, with Node's own `fetch`. Only a
 * process in which a request to a provider fails spends them, once.
 */
async function createClient(
  provider: Provider,
  limits: AttemptLimits,
  fetch: ReturnType<typeof pooledFetch>,
): Promise<OpenAI> {
  const library = await import('openai');
  return new library.OpenAI({
    baseURL: provider.base_url,
    apiKey: provider.api_key ?? 'none',
    // Otherwise the library would take these from the environment and send them to every provider.
    organization: null,
    project: null,
    timeout: limits.attemptTimeoutMs,
    maxRetries: limits.maxRetries,
    logLevel: 'off',
    fetch,
  });
}

/** Opens a provider. Connects to it only with the first request. */
export function openProvider(
  provider: Provider,
  limits: AttemptLimits,
  connection: Connection,
): OpenProvider {
  const headers = headersOf(provider);
  const { origin, pathname, search } = new URL(provider.base_url);
  const base = pathname.replace(/\/$/, '');
  let client: OpenAI | undefined;
  return {
    connection,
    timeoutMs: limits.attemptTimeoutMs,
    head: (method, path) => ({ origin, path: base + path + search, method, headers }),
    // A load that failed, as with too many open files, is tried again by the next failure.
    client: async () => (client ??= await createClient(provider, limits, pooledFetch(connection))),
  };
}
