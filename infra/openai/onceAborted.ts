/** Calls `listener` when the signal aborts, at once if it has; returns what undoes the wish. */
export function onceAborted(
  signal: AbortSignal | null | undefined,
  listener: () => void,
): () => void {
  if (!signal) return () => undefined;
  if (signal.aborted) listener();
  else signal.addEventListener('abort', listener, { once: true });
  return () => signal.removeEventListener('abort', listener);
}
