import type { MemoryLedger } from '../../../shared/lib/memory/ledger.ts';
import { sleep } from '../../../shared/lib/time/sleep.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { createReplayBackoff } from './transientFailures.ts';

/** Waiting for a turn or for memory ends with a permit or the signal; it has no other limit. */
export const WAIT_MS = 2 ** 31 - 1;

/** Ends the work on a session that waits for a transient failure to pass while others need its memory. */
export class SessionPostponed extends Error {}

/** The memory that a session being replayed has reserved. */
export interface SessionMemory {
  isWanted(): boolean;
  /** Releases the memory to those who wait for it, and waits for it again. Hold no texts meanwhile. */
  yieldToWaiters(): Promise<void>;
}

/**
 * Does the work on one session when there is memory for it; accounts take turns. Work that is
 * postponed is begun again after a pause, in which it holds no memory. The waits have no limit
 * other than the signal.
 */
export async function withSessionMemory<Result>(
  memory: Pick<MemoryLedger, 'reserve' | 'hasWaiters'>,
  { account_id, signal }: { account_id: string; signal: AbortSignal },
  work: (sessionMemory: SessionMemory) => Promise<Result>,
): Promise<Result> {
  const request = { account_id, purpose: 'replays', bytes: LIMITS.replays.sessionBytes } as const;
  const reserve = () => memory.reserve(request, { waitMs: WAIT_MS, signal });
  const pauses = createReplayBackoff();
  for (;;) {
    let permit = await reserve();
    try {
      return await work({
        isWanted: () => memory.hasWaiters('replays'),
        async yieldToWaiters() {
          permit.release();
          permit = await reserve();
        },
      });
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof SessionPostponed)) throw error;
    } finally {
      permit.release();
    }
    await sleep(pauses.next(), signal);
  }
}
