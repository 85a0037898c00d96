import type { Leadership } from '../../../shared/lib/concurrency/leaderTask.ts';
import { REPLAYS_LOCK } from './locks.ts';
import { awaitLeaseSession, type LeaseWait } from './leaseSession.ts';

/**
 * Waits until this process holds the lease to run replays. Resolves with undefined if the signal
 * aborts first.
 */
export async function acquireReplayLease(options: LeaseWait): Promise<Leadership | undefined> {
  return awaitLeaseSession({ ...options, name: 'turnlog replays', lock: REPLAYS_LOCK });
}
