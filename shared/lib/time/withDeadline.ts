import { addAbortListener } from 'node:events';

/** A call did not complete within its time limit. */
export class DeadlineExceeded extends Error {
  constructor(limitMs: number) {
    super(`no answer within ${limitMs} ms`);
  }
}

/**
 * Runs a call that observes its signal. The signal aborts with DeadlineExceeded after `limitMs`
 * milliseconds, and with the reason of `signal` when that aborts.
 */
export async function withDeadline<Result>(
  limitMs: number,
  signal: AbortSignal,
  call: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  signal.throwIfAborted();
  const deadline = new AbortController();
  using _cancelling = addAbortListener(signal, () => deadline.abort(signal.reason));
  const expire = (): void => deadline.abort(new DeadlineExceeded(limitMs));
  // Data that arrived while the process was busy is still in the socket's buffer. setImmediate lets
  // Node.js read it before the deadline expires.
  const timer = setTimeout(() => setImmediate(expire), limitMs);
  try {
    return await call(deadline.signal);
  } finally {
    clearTimeout(timer);
  }
}
