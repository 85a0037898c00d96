import type { ProtectedStore } from '../eventlog/encryption/protectedStore.ts';
import { appendBytes } from '../eventlog/appendLimits.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import { noCounts, type Counts } from './counts.ts';
import type { DiskWatch } from './diskWatch.ts';
import { classifyAppend, type AppendPurpose } from './appendPurpose.ts';
import { scanAccountId } from './projection.ts';
import type { StorageQuotas } from './quotas.ts';

interface StorageGuard {
  quotas: Pick<StorageQuotas, 'admit' | 'check'>;
  disk: Pick<DiskWatch, 'isFull' | 'appended'>;
}

const DISK_RETRY_SECONDS = 30;

const storageFullError = (): TurnlogError =>
  new TurnlogError(
    'storage_full',
    'Too little disk space is free, and nothing new is recorded until there is more. Reads, cancels and erasures continue.',
    { retriable: true, retryAfterSeconds: DISK_RETRY_SECONDS },
  );

const countsOf = (events: number, bytes: number, purpose: AppendPurpose): Counts =>
  purpose === 'audit' ? { ...noCounts(), audits: events } : { ...noCounts(), events, bytes };

/**
 * The only place that refuses growth of the log. Every append of a process that serves clients
 * passes here, and its events decide whether quotas and a full disk apply (appendPurpose.ts).
 * Appends then also fail with `quota_exceeded` or `storage_full`.
 */
export function withStorageLimits(
  store: ProtectedStore,
  { quotas, disk }: StorageGuard,
): ProtectedStore {
  function requireDisk(purpose: AppendPurpose): void {
    if (purpose === 'client' && disk.isFull()) throw storageFullError();
  }
  return {
    ...store,
    async requireRoom(accountId, events, bytes) {
      const purpose = classifyAppend(events);
      if (purpose === 'always') return;
      requireDisk(purpose);
      await quotas.check(accountId, purpose, countsOf(events.length, bytes, purpose));
    },
    async append(stream, expected, events) {
      const purpose = classifyAppend(events);
      requireDisk(purpose);
      const account = events[0] && scanAccountId(events[0]);
      if (account === undefined) return store.append(stream, expected, events);
      const bytes = appendBytes(events);
      const counts = countsOf(events.length, bytes, purpose);
      const admission = await quotas.admit(account, purpose, counts);
      disk.appended(bytes);
      try {
        const result = await store.append(stream, expected, events);
        admission.appended(result.position);
        return result;
      } catch (error) {
        admission.failed();
        throw error;
      }
    },
  };
}
