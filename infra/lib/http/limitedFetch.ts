import type { Dispatcher } from 'undici';
import { limitInformationalResponses } from './informationalResponses.ts';
import { buildLimitedConnector } from './uncountedBytes.ts';

class UnrequestedContentCoding extends Error {
  readonly code = 'UNREQUESTED_CONTENT_CODING';
}

/** The codings that `fetch` decodes. It passes on a body with any other one unchanged. */
const DECODED = /\b(?:gzip|deflate|br|zstd)\b/i;

/**
 * An undici interceptor that ends a request whose response has a content coding. `fetch` decodes up to
 * five nested codings, and no limit of the decoded body covers their memory and time.
 */
const refuseContentCodings: Dispatcher.DispatcherComposeInterceptor =
  (dispatch) => (options, handler) =>
    dispatch(options, {
      onRequestStart: (controller, context) => handler.onRequestStart?.(controller, context),
      onRequestUpgrade: (...upgrade) => handler.onRequestUpgrade?.(...upgrade),
      onResponseStart(controller, status, headers, ...more) {
        if (DECODED.test(String(headers['content-encoding'])))
          controller.abort(new UnrequestedContentCoding());
        else handler.onResponseStart?.(controller, status, headers, ...more);
      },
      onResponseData: (controller, chunk) => handler.onResponseData?.(controller, chunk),
      onResponseEnd: (controller, trailers) => handler.onResponseEnd?.(controller, trailers),
      onResponseError: (controller, error) => handler.onResponseError?.(controller, error),
    });

/** Loads undici at the first call, which saves its memory in threads that send no request. */
async function loadFetch() {
  const { Agent, buildConnector, fetch } = await import('undici');
  const connect = buildLimitedConnector(buildConnector, {});
  const agent = new Agent({ connect, allowH2: false });
  return { fetch, dispatcher: agent.compose(refuseContentCodings, limitInformationalResponses) };
}

let loaded: ReturnType<typeof loadFetch> | undefined;

/** The global `fetch` without content codings, and with limits on what is not part of a response. */
export const limitedFetch = (async (input: string, init?: RequestInit) => {
  loaded ??= loadFetch().catch((error: unknown) => {
    // Too many open files, for example: the next request tries again.
    loaded = undefined;
    throw error;
  });
  const { fetch, dispatcher } = await loaded;
  const headers = new Headers(init?.headers);
  headers.set('accept-encoding', 'identity');
  return fetch(input, { ...init, headers, dispatcher } as object);
}) as unknown as typeof fetch;
