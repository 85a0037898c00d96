import type { RecordedEvent } from '../eventlog/event.ts';
import type { RowChange } from '../projections/change.ts';
import type { RowsOf } from '../readModels/table.ts';
import type { ERASURE_TABLES } from './tables.ts';

/** Notifies processes of an erasure, so that they evict the stream from their caches. */
export const projectErasure = (
  { stream, revision, position, metadata: { account_id } }: RecordedEvent,
  { key_ids }: { key_ids: string[] },
): RowChange<RowsOf<typeof ERASURE_TABLES>> => ({
  table: 'erasures',
  key: [stream],
  change: () => ({ stream, account_id, key_ids, position, revision }),
});
