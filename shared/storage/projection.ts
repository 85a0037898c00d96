import { isAudit } from '../audit/events.ts';
import { bytesOf, type StoredEvent } from '../ports/eventStore.ts';
import type { RowsOf } from '../readModels/table.ts';
import { ALL_DAYS, type STORAGE_TABLES } from './tables.ts';

/** An event with decrypted texts, and as stored where that differs. */
type CountedEvent = StoredEvent & { stored?: StoredEvent };
type StorageRow = RowsOf<typeof STORAGE_TABLES>['storage'];
export type StorageKey = readonly [account_id: string, day: string];

/** Quotes inside JSON strings are escaped, so these match only members of the metadata. */
const ACCOUNT = /"account_id":"([^"\\]+)"/;
const RECORDED_ON = /"recorded_at":"([^"\\]{10})/;

/** The account in the metadata of an event; undefined for events of other programs. */
export const scanAccountId = ({ metadata }: Pick<StoredEvent, 'metadata'>): string | undefined =>
  ACCOUNT.exec(metadata)?.[1];

/**
 * The keys of the rows that count an event; none for events of other programs. Returns `previous`, the keys
 * of the event before, if they are the same: most events in a row are counted by the same rows.
 */
export function storageKeys(
  event: Pick<StoredEvent, 'metadata'>,
  previous: readonly StorageKey[],
): readonly StorageKey[] {
  const account_id = scanAccountId(event);
  const day = RECORDED_ON.exec(event.metadata)?.[1];
  if (account_id === undefined || day === undefined) return [];
  if (previous[0]?.[0] === account_id && previous[0][1] === day) return previous;
  return [
    [account_id, day],
    [account_id, ALL_DAYS],
  ];
}

const emptyRow = ([account_id, day]: StorageKey): StorageRow => ({
  account_id,
  day,
  events: 0,
  bytes: 0,
  audits: 0,
  position: '',
});

/**
 * Adds an event to its row, in place like the sums of usage. Undefined when the row has counted the
 * event already.
 */
export function countStored(
  row: StorageRow | undefined,
  key: StorageKey,
  event: CountedEvent,
): StorageRow | undefined {
  if (row && row.position >= event.position) return undefined;
  const counted = row ?? emptyRow(key);
  if (isAudit(event)) counted.audits += 1;
  else {
    counted.events += 1;
    counted.bytes += bytesOf(event.stored ?? event);
  }
  counted.position = event.position;
  return counted;
}
