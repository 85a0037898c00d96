import type { RecordedEvent } from '../eventlog/event.ts';
import type { RowChange } from '../projections/change.ts';
import type { RowsOf } from '../readModels/table.ts';
import type { ERASURE_TABLES } from './tables.ts';

/** Tells processes that cache something of the stream about its erasure. */
export const noteErasure = (
  { stream, revision, position, metadata: { account_id } }: RecordedEvent,
  { key_ids }: { key_ids: string[] },
): RowChange<RowsOf<typeof ERASURE_TABLES>> => ({
  table: 'erasures',
  key: [stream],
  change: () => ({ stream, account_id, key_ids, position, revision }),
});
