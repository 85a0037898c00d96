import type { ServerResponse } from 'node:http';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

/** The reason that ends a wait after its client disconnects. It is never sent. */
export const clientDisconnectError = (): TurnlogError =>
  new TurnlogError('overloaded', 'The client disconnected while its request waited.');

/**
 * The callbacks of each response, called by one listener: Node warns of a leak at eleven listeners, and
 * a streamed turn needs that many.
 */
const callbacks = new WeakMap<ServerResponse, Set<() => void>>();

/**
 * Calls back when the response is sent or its client has disconnected; at once where it already is.
 * Returns a function that removes the listener.
 */
export function onResponseClosed(response: ServerResponse, listener: () => void): () => void {
  if (response.closed) {
    listener();
    return () => {};
  }
  const added = callbacks.get(response) ?? new Set();
  if (!callbacks.has(response)) {
    callbacks.set(response, added);
    response.once('close', () => added.forEach((call) => call()));
  }
  added.add(listener);
  return () => added.delete(listener);
}

/** Aborts when the response is sent or its client has disconnected. */
export function responseClosedSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  onResponseClosed(response, () => closed.abort(clientDisconnectError()));
  return closed.signal;
}
