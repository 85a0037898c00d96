import { addAbortListener } from 'node:events';
import { Silence } from './trouble.ts';

/** The result of a call that can't be cancelled. Rejects with the signal's reason when that aborts. */
export async function unlessAborted<Result>(
  signal: AbortSignal,
  call: () => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  using _aborting = addAbortListener(signal, () => reject(signal.reason as Error));
  return await Promise.race([call(), aborted]);
}

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
