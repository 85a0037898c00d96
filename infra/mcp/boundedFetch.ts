import type { FetchLike } from '@modelcontextprotocol/client';
import { LIMITS } from '../../shared/limits.ts';

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;

/** Counts the bytes of one message: of a stream of events, since the last empty line. */
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

/** The response, which fails once a message of it is longer than one may be. */
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
 * A `fetch` for servers that may be hostile: no message is longer than it may be, and the answer to
 * a POST has so many milliseconds, also where it is a stream that goes on. The stream that a GET
 * opens stays open.
 */
export function createBoundedFetch(postMs: number): FetchLike {
  return async (url, init = {}) => {
    if (init.method !== 'POST') return bounded(await fetch(url, init), () => undefined);
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
      return bounded(await fetch(url, { ...init, signal: limit.signal }), end);
    } catch (error) {
      end();
      throw error;
    }
  };
}
