import type { RecordedEvent } from '../eventlog/event.ts';
import type { RowChange } from '../projections/change.ts';

/** Notes an erasure for processes that remember something of the stream. */
export const noteErasure = (
  { stream, revision, position, metadata: { account_id } }: RecordedEvent,
  { key_ids }: { key_ids: string[] },
): RowChange => ({
  table: 'erasures',
  key: [stream],
  change: () => ({ stream, account_id, key_ids, position, revision }),
});
