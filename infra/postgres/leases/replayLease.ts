import { REPLAYS_LOCK } from './locks.ts';
import { awaitLeaseSession } from './leaseSession.ts';

/**
 * Waits until this process is the one that runs replays; undefined when the signal aborted first.
 */
export async function acquireReplayLease(options: {
  databaseUrl: string;
  signal: AbortSignal;
  /** Called with what kept it from that; it goes on trying. */
  onFailure: (error: unknown, retryInMs: number) => void;
}): Promise<{ lost: AbortSignal; close(): Promise<void> } | undefined> {
  return awaitLeaseSession({ ...options, name: 'turnlog replays', lock: REPLAYS_LOCK });
}
