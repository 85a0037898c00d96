import type { ModelCaller } from '../../shared/ports/chatModel.ts';
import { isNestedDeeper } from './answers/providerFields.ts';
import { isSuccess } from './answers/responseReaders.ts';
import {
  sendAttempt,
  type Connection,
  type RawHeaders,
  type ProviderReply,
  type SentRequest,
} from './attempt.ts';

/** Above this, a `retry-after` is passed to the caller at once instead of waiting. */
const MAX_SLEEP_MS = 20_000;

/** Options of a call, in addition to those of the library. */
export interface CallOptions {
  /** The account of the call, and what receives the text of a streamed answer as it arrives. */
  caller: ModelCaller;
  /** Every attempt sends it, instead of what the library builds. */
  request: SentRequest;
  /** An attempt that was made without the library, which takes it for its first. */
  made: Promise<ProviderReply>[];
}

type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** The members of a Response that the `openai` package reads for an answer that is not streamed. */
type BufferedResponse = Pick<Response, 'ok' | 'status' | 'url' | 'headers' | 'body' | 'text'>;

/** Nesting levels of an error that the library writes as JSON again, and the log and request forms read. */
const ERROR_DEPTH = 64;

/**
 * The text of an error response; empty if it is nested too deeply. The library would exceed the stack and
 * throw that instead of the error with the status, which tells whether to try again.
 */
function readableError(text: string): string {
  try {
    return isNestedDeeper(JSON.parse(text), ERROR_DEPTH) ? '' : text;
  } catch {
    return text;
  }
}

function bufferedResponse({
  url,
  status,
  headers,
  body,
}: Pick<ProviderReply, 'status' | 'body'> & { url: string; headers: Headers }): Response {
  const text = async (): Promise<string> => {
    if (body instanceof Error) throw body;
    return isSuccess(status) ? body : readableError(body);
  };
  const response: BufferedResponse = {
    ok: isSuccess(status),
    status,
    url,
    headers,
    body: null,
    text,
  };
  return response as Response;
}

function readHeaders(raw: RawHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(raw)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  return headers;
}

/**
 * The wait that the server requests, in milliseconds, by `retry-after-ms` or `retry-after` (seconds
 * or a date, RFC 9110); undefined without such a header.
 */
export function retryAfterMs(headers: Headers, now: number): number | undefined {
  const milliseconds = Number.parseFloat(headers.get('retry-after-ms') ?? '');
  if (milliseconds >= 0) return milliseconds;
  const text = headers.get('retry-after');
  if (text === null) return undefined;
  const seconds = Number.parseFloat(text);
  if (seconds >= 0) return seconds * 1000;
  const waitMs = Date.parse(text) - now;
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs);
}

/** The library gets a streamed answer as a whole, as if it had arrived at once. */
function responseOf(
  url: string,
  { status, headers: raw, isStream, body }: ProviderReply,
): Response {
  const headers = readHeaders(raw);
  if (isStream) headers.set('content-type', 'application/json');
  // The library waits for any retry-after up to a minute, and ignores longer ones.
  if ((retryAfterMs(headers, Date.now()) ?? 0) > MAX_SLEEP_MS)
    headers.set('x-should-retry', 'false');
  return bufferedResponse({ url, status, headers, body });
}

/**
 * A `fetch` for the `openai` package over undici's dispatcher. It resolves only after it has read
 * the whole body, so that the library's time limit per attempt covers a stalled body.
 *
 * The library retries a call whose fetch rejects, but not one whose body fails: see sendAttempt.
 */
export function pooledFetch(connection: Connection): Fetch {
  return async (_, init) => {
    const { caller, request, made, signal } = init as RequestInit & CallOptions;
    const attempt = made.pop() ?? sendAttempt(connection, request, { caller, signal });
    return responseOf(request.origin + request.path, await attempt);
  };
}
