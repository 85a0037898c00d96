import { randomUUID } from 'node:crypto';
import { retry } from '../../../shared/lib/time/backoff.ts';
import { parseClientConfig, type Environment } from '../../../shared/lib/config/config.ts';
import {
  isTurnlogError,
  storeUnavailableError,
  TurnlogError,
  type ErrorCode,
} from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { usageError } from '../failure.ts';

/** The HTTP API of a running service, for commands that are its clients. */
export interface ApiClient {
  /** Sends a request and resolves with the `data` of its response. Retries are idempotent. */
  request<Data>(method: 'GET' | 'POST', path: string, body?: object): Promise<Data>;
  /** Opens a stream of events. */
  openStream(path: string, lastEventId: string | undefined): Promise<Response>;
}

/** The body of a failed response; empty where a proxy answers. */
interface Failure {
  error?: string;
  code?: ErrorCode;
  retry?: string;
}

/** For requests whose response is lost, or that the service asks to retry. */
const [MAX_ATTEMPTS, PAUSES] = [5, { firstMs: 200, longestMs: 2_000 }];
const shouldRetry = (error: unknown, attempts: number): boolean =>
  isTurnlogError(error) && error.retriable && attempts < MAX_ATTEMPTS;
/** How long a response may take to begin. */
const RESPONSE_MS = LIMITS.http.requestMs;

/** Reads the client's options; throws a usage error that names every problem. */
function clientConfig(env: Environment) {
  try {
    return parseClientConfig(env);
  } catch (error) {
    throw usageError((error as TurnlogError).message);
  }
}

/** Creates a client of the service at `TURNLOG_URL`, with the key `TURNLOG_API_KEY`. */
export function createApiClient(env: Environment, signal: AbortSignal): ApiClient {
  const { TURNLOG_URL: url, TURNLOG_API_KEY: key } = clientConfig(env);
  const base = url.replace(/\/+$/, '');

  const foreignError = (cause?: unknown): TurnlogError =>
    new TurnlogError(
      'configuration_invalid',
      `The server at ${base} is not the API of Turnlog: set TURNLOG_URL to its address.`,
      { cause },
    );

  async function call(
    path: string,
    init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> },
  ): Promise<Response> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error('It took too long.')), RESPONSE_MS);
    try {
      const headers = { 'x-api-key': key, ...init.headers };
      const ends = AbortSignal.any([signal, late.signal]);
      // Following a redirect would send the key to another address.
      const redirect = 'manual';
      const response = await fetch(base + path, { ...init, headers, redirect, signal: ends });
      if (response.ok) return response;
      const failure = (await response.json().catch(() => ({}))) as Failure;
      const { status } = response;
      const { error = `It answered ${status}.`, code, retry: advice } = failure;
      // A proxy answers without advice.
      const retriable =
        advice === undefined ? status === 429 || status >= 500 : advice === 'same_key';
      const ownCode = retriable ? 'store_unavailable' : 'configuration_invalid';
      throw new TurnlogError(code ?? ownCode, `${error} (${code ?? status})`, { retriable });
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof TurnlogError) throw error;
      throw storeUnavailableError(`The service at ${base} does not answer.`, error);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async request<Data>(method: string, path: string, body?: object) {
      const headers = {
        'content-type': 'application/json',
        'idempotency-key': `"${randomUUID()}"`,
      };
      const init = { method, ...(body && { body: JSON.stringify(body), headers }) };
      const send = async (): Promise<Data> => {
        const response = await call(path, init);
        try {
          const answer = (await response.json()) as { success?: unknown; data: Data } | null;
          if (answer?.success === true) return answer.data;
          throw foreignError();
        } catch (error) {
          signal.throwIfAborted();
          if (error instanceof TurnlogError) throw error;
          if ((error as Error).name === 'SyntaxError') throw foreignError(error);
          throw storeUnavailableError(`The answer of the service at ${base} broke off.`, error);
        }
      };
      return retry(send, { pauses: PAUSES, shouldRetry, signal });
    },
    async openStream(path, lastEventId) {
      const response = await call(path, {
        headers: {
          accept: 'text/event-stream',
          ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
        },
      });
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream');
      if (isStream || response.status === 204) return response;
      await response.body?.cancel();
      throw foreignError();
    },
  };
}
