import type { ServerResponse } from 'node:http';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

/** The reason that ends a wait after its client disconnects. It is never sent. */
export const clientDisconnectError = (): TurnlogError =>
  new TurnlogError('overloaded', 'The client disconnected while its request waited.');

/**
 * Calls back when the response is sent or its client has disconnected; at once where it already is.
 * Returns a function that removes the listener.
 */
export function onResponseClosed(response: ServerResponse, listener: () => void): () => void {
  if (response.closed) listener();
  else response.once('close', listener);
  return () => response.off('close', listener);
}

/** Aborts when the response is sent or its client has disconnected. */
export function responseClosedSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  onResponseClosed(response, () => closed.abort(clientDisconnectError()));
  return closed.signal;
}
