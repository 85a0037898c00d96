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

/** Settles with the next append of any thread. */
const nextAppend = () => Atomics.waitAsync(counter, 0, Atomics.load(counter, 0)).value;

export interface AppendNotifications {
  /**
   * Resolves when this process has appended, when another process may have, when `signal` aborts
   * and on close.
   */
  wait(signal: AbortSignal): Promise<void>;
  close(): void;
}

/** Subscribes to appends by any thread of this process. */
export function subscribeToAppends(): AppendNotifications {
  const waiters = new Set<() => void>();
  const wakeAll = (): void => waiters.forEach((wake) => wake());
  let closed = false;

  /**
   * Arms the next wait before it wakes readers, so that they miss no append in between. After `close` it
   * ends with the next append.
   */
  async function listen(): Promise<void> {
    for (let next = nextAppend(); ;) {
      await next;
      if (closed) return;
      next = nextAppend();
      wakeAll();
    }
  }
  void listen();

  async function wait(signal: AbortSignal): Promise<void> {
    const { promise: woken, resolve: wake } = Promise.withResolvers<void>();
    using _aborting = addAbortListener(signal, () => wake());
    const timer = setTimeout(wake, POLL_MS);
    waiters.add(wake);
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

/** Notifies every thread of this process that a log has grown. */
export function announceAppend(): void {
  Atomics.add(counter, 0, 1);
  Atomics.notify(counter, 0);
}
