import { addAbortListener } from 'node:events';
import { Silence } from './trouble.ts';

/**
 * Runs a call that must not take longer. Rejects with Silence when it does, with the signal's
 * reason when that aborts; the call is cancelled then.
 */
export async function within<Result>(
  limitMs: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const limit = new AbortController();
  using _cancelling = addAbortListener(signal, () => limit.abort(signal.reason));
  const silence = (): void => limit.abort(new Silence(`no answer within ${limitMs} ms`));
  // What came while this process was busy lies in the socket's buffer: it is read before the time
  // counts as over.
  const timer = setTimeout(() => setImmediate(silence), limitMs);
  try {
    return await call(limit.signal);
  } finally {
    clearTimeout(timer);
  }
}
