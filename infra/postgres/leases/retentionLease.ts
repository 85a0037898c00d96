import { leadOnce } from '../../../shared/lib/concurrency/leaderTask.ts';
import { RETENTION_LOCK } from './locks.ts';
import { tryLeaseSession } from './leaseSession.ts';

/**
 * Runs the work unless another process on this database is running it; then resolves with false.
 * The signal aborts when another process may begin. Throws `store_unavailable` and the errors of
 * the work.
 */
export async function withRetentionLease(
  databaseUrl: string,
  work: (lost: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const request = { databaseUrl, name: 'turnlog retention', lock: RETENTION_LOCK } as const;
  return leadOnce(
    () => tryLeaseSession(request),
    ({ lost }) => work(lost),
  );
}
