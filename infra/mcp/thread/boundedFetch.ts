import type { FetchLike } from '@modelcontextprotocol/client';
import { RUN_LIMITS } from '../../../shared/runs/limits.ts';
import { limitedFetch } from '../../lib/http/limitedFetch.ts';
import type { Inflow } from './inflow.ts';
import { createLineBuffer } from './lines.ts';

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPENING_BRACKET = 0x5b;
const OPENINGS = new Set([OPENING_BRACKET, 0x7b]);
const CLOSINGS = new Set([0x5d, 0x7d]);

/** The memory that a parser takes for a line beside its text: lines may have a single character. */
const LINE_BYTES = 64;

/**
 * Measures the body of a response before it is parsed: its bytes, and the length and JSON values of
 * each message. A message of an event stream ends with an empty line; others end with the body, and
 * are counted if they are a batch.
 * Returns the memory that the message takes so far, or undefined once the server has sent too much.
 */
export function createMessageMeter(
  isStream: boolean,
  inflow: Inflow,
): (chunk: Uint8Array) => number | undefined {
  const { messageBytes, messageValues } = RUN_LIMITS.mcp;
  let bytes = 0;
  let values = 0;
  let lines = 0;
  let depth = 0;
  let isBatch: boolean | undefined;
  let isInString = false;
  let isEscaped = false;
  let isEmptyLine = false;
  let isAfterReturn = false;

  function check(): void {
    if (bytes > messageBytes) inflow.exceed('it sent a message that is too long');
    if (values > messageValues) inflow.exceed('it sent a message with too many values');
  }

  function endLine(): void {
    // JSON has no line end within a string.
    isInString = false;
    isEscaped = false;
    lines += 1;
    if (isStream && isEmptyLine) {
      check();
      bytes = 0;
      values = 0;
      lines = 0;
      inflow.message();
    }
    isEmptyLine = true;
  }

  function count(byte: number): void {
    isEmptyLine = false;
    if (isEscaped) isEscaped = false;
    else if (byte === BACKSLASH) isEscaped = isInString;
    else if (byte === QUOTE) isInString = !isInString;
    else if (!isInString) countValue(byte);
  }

  /** A comma, an opening bracket and an opening brace each begin a JSON value. */
  function countValue(byte: number): void {
    if (OPENINGS.has(byte)) {
      isBatch ??= !isStream && byte === OPENING_BRACKET;
      depth += 1;
      values += 1;
    } else if (CLOSINGS.has(byte)) depth -= 1;
    else if (byte === COMMA) {
      values += 1;
      // The first message is counted with the response.
      if (isBatch && depth === 1) inflow.message();
    }
  }

  return (chunk) => {
    for (const byte of chunk) {
      bytes += 1;
      // A line of a stream may end with a carriage return, a line feed, or both.
      if (byte === CARRIAGE_RETURN || (byte === LINE_FEED && !isAfterReturn)) endLine();
      else if (byte !== LINE_FEED) count(byte);
      isAfterReturn = byte === CARRIAGE_RETURN;
    }
    check();
    if (!inflow.bytes(chunk.length)) return undefined;
    return bytes + (isStream ? lines * LINE_BYTES : 0);
  };
}

/** The library compares media types in lower case, and takes one with a comma for unknown. */
const EVENT_STREAM = /^\s*text\/event-stream\s*(;[^,]*)?$/i;

/**
 * True for a response that the library parses as a stream: it takes any body of a GET for one, and
 * keeps the whole text of others, such as refusals and responses to notifications.
 */
function isParsedAsStream({ ok, status, headers }: Response, { method, body }: RequestInit) {
  if (!ok || method !== 'POST') return ok && method === 'GET';
  if (status === 202 || !EVENT_STREAM.test(headers.get('content-type') ?? '')) return false;
  const message = JSON.parse(body as string) as object;
  return 'method' in message && 'id' in message;
}

/**
 * A response that fails once the server has sent too much. It waits for the memory of its messages
 * until `signal` aborts.
 */
function bounded(
  response: Response,
  inflow: Inflow,
  { signal, isStream, onEnd }: { signal: AbortSignal; isStream: boolean; onEnd: () => void },
): Response {
  const { body, status, statusText, headers } = response;
  if (!body) {
    onEnd();
    return response;
  }
  const held = inflow.holdUnfinished();
  const measure = createMessageMeter(isStream, inflow);
  const wholeLines = isStream ? createLineBuffer() : (chunk: Uint8Array) => chunk;
  const end = (): void => {
    held.release();
    onEnd();
  };
  const limiter = new TransformStream<Uint8Array, Uint8Array>({
    async transform(chunk, controller) {
      try {
        const bytes = measure(chunk);
        if (bytes === undefined) throw new Error('the server sends too much');
        await held.resize(bytes, signal);
      } catch (error) {
        end();
        throw error;
      }
      const ready = wholeLines(chunk);
      if (ready) controller.enqueue(ready);
    },
    flush: end,
    cancel: end,
  });
  return new Response(body.pipeThrough(limiter), { status, statusText, headers });
}

/**
 * A `fetch` for servers that may be hostile: their responses are measured before they are parsed, each
 * response counts as a message, and the response to a POST must end within `postMs`, also where it
 * is a stream. The stream of a GET stays open.
 */
export function createBoundedFetch(postMs: number, inflow: Inflow): FetchLike {
  return async (url, init = {}) => {
    if (!inflow.message()) throw new Error('the server sends too much');
    if (init.method !== 'POST') {
      const signal = init.signal ?? new AbortController().signal;
      const response = await limitedFetch(url, init);
      const isStream = isParsedAsStream(response, init);
      return bounded(response, inflow, { signal, isStream, onEnd: () => undefined });
    }
    const limit = new AbortController();
    const leave = (): void => limit.abort(init.signal?.reason);
    const timer = setTimeout(() => limit.abort(new Error('the server took too long')), postMs);
    timer.unref();
    init.signal?.addEventListener('abort', leave, { once: true });
    const end = (): void => {
      clearTimeout(timer);
      init.signal?.removeEventListener('abort', leave);
    };
    try {
      if (init.signal?.aborted) leave();
      const { signal } = limit;
      const response = await limitedFetch(url, { ...init, signal });
      const isStream = isParsedAsStream(response, init);
      return bounded(response, inflow, { signal, isStream, onEnd: end });
    } catch (error) {
      end();
      throw error;
    }
  };
}
