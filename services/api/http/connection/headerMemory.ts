import type { IncomingMessage, ServerResponse } from 'node:http';
import { registerResource } from '../../../../shared/lib/concurrency/resources.ts';
import { LIMITS } from '../../../../shared/limits.ts';

/** Memory of a string besides its characters: its object, and its places in the lists of headers. */
const STRING_BYTES = 64;

/** Estimates the memory of a request's headers. */
function bytesOf({ rawHeaders, url = '' }: IncomingMessage): number {
  let bytes = url.length;
  for (const text of rawHeaders) bytes += text.length + STRING_BYTES;
  return bytes;
}

/** Counts the headers of a request until its response is closed. False if the limit is reached. */
type HoldHeaders = (request: IncomingMessage, response: ServerResponse) => boolean;

/**
 * Limits the memory of large headers. Node keeps the headers of a request until its response is
 * closed, also while it waits behind another one of its connection.
 */
export function limitHeaderMemory(resource: string, limit: number): HoldHeaders {
  let used = 0;
  let rejected = 0;
  registerResource(resource, {
    usage: () => ({ bytes: { limit, used }, rejected: { account: 0, process: rejected } }),
  });
  return (request, response) => {
    const bytes = bytesOf(request);
    if (bytes <= LIMITS.http.smallHeadersBytes) return true;
    if (used + bytes > limit) {
      rejected += 1;
      return false;
    }
    used += bytes;
    // Node does not close the responses of requests that still wait when their connection closes.
    const events = [response, request.socket];
    const release = (): void => {
      used -= bytes;
      for (const event of events) event.off('close', release);
    };
    for (const event of events) event.once('close', release);
    return true;
  };
}
