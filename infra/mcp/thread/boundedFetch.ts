import type { FetchLike } from '@modelcontextprotocol/client';
import { limitedFetch } from '../../lib/informationalResponses.ts';
import type { Inflow } from './inflow.ts';
import { createLineBuffer } from './lines.ts';
import { createMessageMeter } from './messageMeter.ts';

/**
 * A response that fails once the server has sent too much. It waits for the memory of its messages
 * until `signal` aborts.
 */
function bounded(
  response: Response,
  inflow: Inflow,
  { signal, onEnd }: { signal: AbortSignal; onEnd: () => void },
): Response {
  const { body, status, statusText, headers } = response;
  if (!body) {
    onEnd();
    return response;
  }
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') ?? false;
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
      return bounded(await limitedFetch(url, init), inflow, { signal, onEnd: () => undefined });
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
      return bounded(response, inflow, { signal, onEnd: end });
    } catch (error) {
      end();
      throw error;
    }
  };
}
