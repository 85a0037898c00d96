import { randomUUID } from 'node:crypto';
import { retry } from '../../../shared/lib/time/backoff.ts';
import { parseClientConfig, type Environment } from '../../../shared/lib/config/config.ts';
import { isTurnlogError, TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { usageError } from '../failure.ts';

/** The HTTP API of a running service, for commands that are its clients. */
export interface ApiClient {
  /**
   * The `data` of an answer. What is lost on its way is sent again, and done once all the same. Errors: `configuration_invalid`, with
   * what the service said.
   */
  ask<Data>(method: 'GET' | 'POST', path: string, body?: object): Promise<Data>;
  /** An answer that is a stream of events. Errors: the same. */
  open(path: string, lastEventId: string | undefined): Promise<Response>;
}

interface Failure {
  error?: string;
  code?: string;
}

const requestError = (message: string, retriable: boolean, cause?: unknown): TurnlogError =>
  new TurnlogError('configuration_invalid', message, { retriable, cause });

/** Of a request whose answer is lost, or to whom the service says to come again. */
const [SENDINGS, PAUSES] = [5, { firstMs: 200, longestMs: 2_000 }];
const shouldRetry = (error: unknown, sendings: number): boolean =>
  isTurnlogError(error) && error.retriable && sendings < SENDINGS;
/** How long an answer may take to begin. */
const ANSWER_MS = LIMITS.http.requestMs;

/** Reads where the service is. Errors: a usage error that names every problem. */
function clientConfig(env: Environment) {
  try {
    return parseClientConfig(env);
  } catch (error) {
    throw usageError((error as TurnlogError).message);
  }
}

/** The service that `TURNLOG_URL` names, with the key of `TURNLOG_API_KEY`. Errors: a usage error. */
export function createApiClient(env: Environment, signal: AbortSignal): ApiClient {
  const { TURNLOG_URL: url, TURNLOG_API_KEY: key } = clientConfig(env);
  const base = url.replace(/\/+$/, '');

  async function call(
    path: string,
    init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> },
  ): Promise<Response> {
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(new Error('It took too long.')), ANSWER_MS);
    try {
      const headers = { 'x-api-key': key, ...init.headers };
      const ends = AbortSignal.any([signal, late.signal]);
      // Followed, a redirect would have the key at an address that nobody named.
      const redirect = 'manual';
      const response = await fetch(base + path, { ...init, headers, redirect, signal: ends });
      if (response.ok) return response;
      const said = (await response.json().catch(() => ({}))) as Failure;
      const { error = `It answered ${response.status}.`, code = String(response.status) } = said;
      const { status } = response;
      const comesAgain = status === 429 || status >= 500 || code === 'idempotency_in_progress';
      throw requestError(`${error} (${code})`, comesAgain);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof TurnlogError) throw error;
      throw requestError(`The service at ${base} does not answer.`, true, error);
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async ask<Data>(method: string, path: string, body?: object) {
      const headers = {
        'content-type': 'application/json',
        'idempotency-key': `"${randomUUID()}"`,
      };
      const init = { method, ...(body && { body: JSON.stringify(body), headers }) };
      const send = async (): Promise<Data> => {
        const response = await call(path, init);
        try {
          return ((await response.json()) as { data: Data }).data;
        } catch (error) {
          signal.throwIfAborted();
          throw requestError(`The answer of the service at ${base} broke off.`, true, error);
        }
      };
      return retry(send, { pauses: PAUSES, again: shouldRetry, signal });
    },
    open: (path, lastEventId) =>
      call(path, {
        headers: {
          accept: 'text/event-stream',
          ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
        },
      }),
  };
}
