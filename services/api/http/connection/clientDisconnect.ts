import type { ServerResponse } from 'node:http';
import { TurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';

/** Why a wait ends whose client has left; nobody is told. */
export const clientDisconnectError = (): TurnlogError =>
  new TurnlogError('overloaded', 'The client left before its turn had come.');

/**
 * Calls back once the client has the answer, or has left; at once where that is so already. Returns
 * what ends that.
 */
export function onResponseClosed(response: ServerResponse, listener: () => void): () => void {
  if (response.closed) listener();
  else response.once('close', listener);
  return () => response.off('close', listener);
}

/** Aborts once the client has the answer, or has left. */
export function responseClosedSignal(response: ServerResponse): AbortSignal {
  const closed = new AbortController();
  onResponseClosed(response, () => closed.abort(clientDisconnectError()));
  return closed.signal;
}
