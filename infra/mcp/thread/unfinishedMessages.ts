import { addAbortListener } from 'node:events';
import { createUnregisteredPool, type Permit } from '../../../shared/lib/concurrency/capacity.ts';

/** The memory of a response's message that has not ended. */
export interface UnfinishedMessage {
  /**
   * Waits until the message may take so many bytes; fewer than before are those of the next message.
   * Throws the abort reason, and an error if no message may take as many.
   */
  resize(bytes: number, signal: AbortSignal): Promise<void>;
  /** Releases the memory; idempotent. A waiting `resize` rejects. */
  release(): void;
}

interface Waiter {
  permit: Permit;
  bytes: number;
  admit: () => void;
}

/**
 * The memory for messages that have not ended, of which each connection has a fair share and one message
 * may take half. Messages wait for each other to end. One message at a time is not counted, so that
 * they don't all wait: the one that has waited longest.
 */
export function createUnfinishedMessages(
  totalBytes: number,
): (connection: string) => UnfinishedMessage {
  const pool = createUnregisteredPool({ permits: Infinity, bytes: totalBytes });
  /** The oldest first. While there are any, a message is uncounted. */
  const waiting = new Set<Waiter>();
  let uncounted: Permit | undefined;

  function grow(permit: Permit, bytes: number): boolean {
    if (permit === uncounted || permit.resize(bytes)) return true;
    if (uncounted) return false;
    uncounted = permit;
    permit.resize(0);
    return true;
  }

  function admitWaiters(): void {
    for (const waiter of waiting) {
      if (!grow(waiter.permit, waiter.bytes)) continue;
      waiting.delete(waiter);
      waiter.admit();
    }
  }

  return (account_id) => {
    const permit = pool.forceAcquire({ account_id });
    let held = 0;
    let stopWaiting: ((error: Error) => void) | undefined;

    function free(): void {
      if (uncounted === permit) uncounted = undefined;
      permit.resize(0);
      held = 0;
    }

    async function wait(bytes: number, signal: AbortSignal): Promise<void> {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      const waiter = { permit, bytes, admit: resolve };
      waiting.add(waiter);
      stopWaiting = (error) => {
        waiting.delete(waiter);
        reject(error);
      };
      using _listening = addAbortListener(signal, () => stopWaiting?.(signal.reason as Error));
      await promise;
    }

    return {
      async resize(bytes, signal) {
        if (bytes > totalBytes / 2) throw new Error('the server sends too much');
        if (bytes < held) {
          free();
          admitWaiters();
        }
        if (!grow(permit, bytes)) await wait(bytes, signal);
        held = bytes;
      },
      release() {
        stopWaiting?.(new Error('the response has ended'));
        free();
        permit.release();
        admitWaiters();
      },
    };
  };
}
