import { createRequire } from 'node:module';

/** What this file knows of the library's queue of requests to one broker. */
interface RequestQueue {
  pending: readonly unknown[];
  /** Until when the broker wants to be left alone, as of `Date.now()`; -1 if it never did. */
  throttledUntil: number;
  scheduleCheckPendingRequests(): void;
}

const { prototype } = createRequire(import.meta.url)('kafkajs/src/network/requestQueue') as {
  prototype: RequestQueue;
};

/**
 * kafkajs 2.2.4 sets a timer after every answer, also where no request is pending: with a negative
 * time then, of which Node.js warns on standard error. Without a pending request there is nothing
 * to check later: whatever is sent next looks by itself whether it may go. For the whole process.
 */
export function patchIdleTimers(): void {
  const schedule = prototype.scheduleCheckPendingRequests;
  prototype.scheduleCheckPendingRequests = function scheduleWherePending(this: RequestQueue) {
    if (this.pending.length > 0) schedule.call(this);
  };
}
