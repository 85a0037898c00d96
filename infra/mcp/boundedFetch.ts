import type { FetchLike } from '@modelcontextprotocol/client';
import { LIMITS } from '../../shared/limits.ts';
import { limitedFetch } from '../lib/informationalResponses.ts';

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Counts the bytes of a message. A message of an event stream ends with an empty line. */
function createCounter(isStream: boolean): (chunk: Uint8Array) => number {
  let bytes = 0;
  let emptyLine = false;
  return (chunk) => {
    for (const byte of chunk) {
      bytes += 1;
      if (!isStream || byte === CARRIAGE_RETURN) continue;
      if (byte === LINE_FEED && emptyLine) bytes = 0;
      emptyLine = byte === LINE_FEED;
    }
    return bytes;
  };
}

/** A response that fails once a message exceeds the limit. */
function bounded(response: Response, onEnd: () => void): Response {
  const { body, status, statusText, headers } = response;
  if (!body) {
    onEnd();
    return response;
  }
  const count = createCounter(
    headers.get('content-type')?.startsWith('text/event-stream') ?? false,
  );
  const limiter = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      if (count(chunk) > LIMITS.mcp.messageBytes) throw new Error('the server says too much');
      controller.enqueue(chunk);
    },
    flush: onEnd,
  });
  return new Response(body.pipeThrough(limiter), { status, statusText, headers });
}

/**
 * A `fetch` for servers that may be hostile: messages are limited in length, and the response to a
 * POST must end within `postMs`, also where it is a stream. The stream of a GET stays open.
 */
export function createBoundedFetch(postMs: number): FetchLike {
  return async (url, init = {}) => {
    if (init.method !== 'POST') return bounded(await limitedFetch(url, init), () => undefined);
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
      return bounded(await limitedFetch(url, { ...init, signal: limit.signal }), end);
    } catch (error) {
      end();
      throw error;
    }
  };
}
