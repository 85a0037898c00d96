import { addAbortListener } from 'node:events';
import { realpathSync } from 'node:fs';
import { BroadcastChannel } from 'node:worker_threads';

/**
 * The interval, in milliseconds, at which a waiting subscription checks for appends by other
 * processes.
 */
const POLL_MS = 200;

/**
 * The channel shared by all threads of this process that use the log, whatever path they opened it
 * by.
 */
const openChannel = (file: string): BroadcastChannel =>
  new BroadcastChannel(`turnlog-events:${realpathSync(file)}`);

export interface AppendNotifications {
  /**
   * Resolves when this process has appended, when another process may have, when `signal` aborts
   * and on close.
   */
  wait(signal: AbortSignal): Promise<void>;
  close(): void;
}

/** Subscribes to appends by any thread of this process. */
export function subscribeToAppends(file: string): AppendNotifications {
  const waiters = new Set<() => void>();
  const wakeAll = (): void => waiters.forEach((wake) => wake());
  const channel = openChannel(file);
  channel.addEventListener('message', wakeAll);
  channel.unref();

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
    channel.close();
    wakeAll();
  }

  return { wait, close };
}

/** Notifies every thread of this process that the log has grown. */
export function createAppendNotifier(file: string): { announce(): void; close(): void } {
  const channel = openChannel(file);
  channel.unref();
  return { announce: () => channel.postMessage(null), close: () => channel.close() };
}
