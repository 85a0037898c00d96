import type { ProtectedStore } from '../eventlog/encryption/protectedStore.ts';
import { appendBytes } from '../eventlog/appendLimits.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { EncodedEvent } from '../ports/eventStore.ts';
import { noCounts, type Counts } from './counts.ts';
import type { DiskWatch } from './diskWatch.ts';
import { purposeOf, type AppendPurpose } from './appendPurpose.ts';
import { accountOf } from './projection.ts';
import type { StorageQuotas } from './quotas.ts';

interface StorageGuard {
  quotas: Pick<StorageQuotas, 'admit'>;
  disk: Pick<DiskWatch, 'isFull' | 'appended'>;
}

const DISK_RETRY_SECONDS = 30;

const storageFullError = (): TurnlogError =>
  new TurnlogError(
    'storage_full',
    'Too little disk space is free, and nothing new is recorded until there is more. Reads, cancels and erasures continue.',
    { retriable: true, retryAfterSeconds: DISK_RETRY_SECONDS },
  );

const countsOf = (events: readonly EncodedEvent[], purpose: AppendPurpose): Counts =>
  purpose === 'audit'
    ? { ...noCounts(), audits: events.length }
    : { ...noCounts(), events: events.length, bytes: appendBytes(events) };

/**
 * The only place that refuses growth of the log. Every append of a process that serves clients
 * passes here, and its events decide whether quotas and a full disk apply (appendPurpose.ts). Appends then
 * also fail with `quota_exceeded` or `storage_full`.
 */
export const withStorageLimits = (
  store: ProtectedStore,
  { quotas, disk }: StorageGuard,
): ProtectedStore => ({
  ...store,
  async append(stream, expected, events) {
    const purpose = purposeOf(events);
    if (purpose === 'client' && disk.isFull()) throw storageFullError();
    const account = events[0] && accountOf(events[0]);
    if (account === undefined) return store.append(stream, expected, events);
    const counts = countsOf(events, purpose);
    const admission = await quotas.admit(account, purpose, counts);
    disk.appended(counts.bytes);
    try {
      const result = await store.append(stream, expected, events);
      admission.appended(result.position);
      return result;
    } catch (error) {
      admission.failed();
      throw error;
    }
  },
});
