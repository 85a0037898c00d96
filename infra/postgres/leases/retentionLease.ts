import { leadOnce } from '../../../shared/lib/concurrency/leaderTask.ts';
import { RETENTION_LOCK } from './locks.ts';
import { tryLeaseSession } from './leaseSession.ts';

/**
 * Does the work where no other process over this database does; false where one does. The signal
 * aborts when another one may begin. Errors: those of the work, `store_unavailable`.
 */
export async function withRetentionLease(
  databaseUrl: string,
  work: (lost: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const wanted = { databaseUrl, name: 'turnlog retention', lock: RETENTION_LOCK } as const;
  return leadOnce(
    () => tryLeaseSession(wanted),
    ({ lost }) => work(lost),
  );
}
