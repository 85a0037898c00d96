import { REPLAYS_LOCK } from './locks.ts';
import { awaitLeaseSession } from './leaseSession.ts';

/**
 * Waits until this process holds the lease to run replays. Resolves with undefined if the signal
 * aborts first.
 */
export async function acquireReplayLease(options: {
  databaseUrl: string;
  signal: AbortSignal;
  /** Called for every failure. The next attempt follows after a pause. */
  onFailure: (error: unknown, retryInMs: number) => void;
}): Promise<{ lost: AbortSignal; close(): Promise<void> } | undefined> {
  return awaitLeaseSession({ ...options, name: 'turnlog replays', lock: REPLAYS_LOCK });
}
