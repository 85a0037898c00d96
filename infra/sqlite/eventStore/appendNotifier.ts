import { addAbortListener } from 'node:events';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/**
 * The interval, in milliseconds, at which a waiting subscription checks for appends by other
 * processes.
 */
const POLL_MS = 200;

const SHARED = 'turnlog: number of appends';

/**
 * Counts the appends of this process, to any log. Threads inherit it from the thread that started them,
 * which must have loaded this module before: a thread that does not only polls. (With the messages of a
 * BroadcastChannel, each thread loads Node's own undici: 6 MB in all.)
 */
function appendCounter(): Int32Array {
  const shared = getEnvironmentData(SHARED) as SharedArrayBuffer | undefined;
  const memory = shared ?? new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  if (!shared) setEnvironmentData(SHARED, memory);
  return new Int32Array(memory);
}

const counter = appendCounter();

/** The number of appends of this process so far. */
export const countAppends = (): number => Atomics.load(counter, 0);

export interface AppendNotifications {
  /**
   * Resolves once this process has appended since `countAppends` returned `count`, when another process
   * may have, when `signal` aborts and on close.
   */
  wait(count: number, signal: AbortSignal): Promise<void>;
  close(): void;
}

/** Subscribes to appends by any thread of this process. */
export function subscribeToAppends(): AppendNotifications {
  const waiters = new Set<() => void>();
  const wakeAll = (): void => waiters.forEach((wake) => wake());
  let closed = false;
  let isArmed = false;

  /**
   * Wakes the waiters at the first append after `count`. Appends wake this thread only while it waits:
   * a follower that gathers events, or is behind, is not interrupted by each of them.
   */
  async function arm(count: number): Promise<void> {
    if (isArmed) return;
    isArmed = true;
    // Does not wait if there has been an append since.
    await Atomics.waitAsync(counter, 0, count).value;
    isArmed = false;
    wakeAll();
  }

  async function wait(count: number, signal: AbortSignal): Promise<void> {
    if (closed || countAppends() !== count) return;
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    using _aborting = addAbortListener(signal, () => wake());
    const timer = setTimeout(wake, POLL_MS);
    waiters.add(wake);
    void arm(count);
    try {
      await woken;
    } finally {
      clearTimeout(timer);
      waiters.delete(wake);
    }
  }

  function close(): void {
    closed = true;
    wakeAll();
  }

  return { wait, close };
}

/** Notifies the threads of this process that wait for appends that a log has grown. */
export function announceAppend(): void {
  Atomics.add(counter, 0, 1);
  Atomics.notify(counter, 0);
}
