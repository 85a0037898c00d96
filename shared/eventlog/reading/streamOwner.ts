/** Whose a stream is, as its first event says. Rows say it too, and can be changed. */
import { readPresentEvents } from './readPresentEvents.ts';
import type { EventLog, StoredEvent } from '../../ports/eventStore.ts';
import { isValidMetadata } from '../domainEvent.ts';

interface OwnerSource {
  store: Pick<EventLog, 'readStream'>;
}

/** The account that an event names; undefined for an event whose metadata are invalid. */
export function parseAccountId({
  metadata: text,
}: Pick<StoredEvent, 'metadata'>): string | undefined {
  try {
    const metadata: unknown = JSON.parse(text);
    return isValidMetadata(metadata) ? metadata.account_id : undefined;
  } catch {
    return undefined;
  }
}

/** The owner according to the log; undefined when the log is damaged or does not contain it. */
export async function readRecordedOwner(
  { store }: OwnerSource,
  stream: string,
): Promise<string | undefined> {
  const [first] = await readPresentEvents(store, stream, { direction: 'forwards', limit: 1 });
  return first && parseAccountId(first);
}

/**
 * True when the account owns the stream according to the log, or to its row where the log does not
 * tell. A stream of another account takes the same work as an unknown one, so that the time of a
 * response does not tell them apart. Errors: `store_unavailable`.
 */
export async function isOwnStream(
  source: OwnerSource,
  accountId: string,
  stream: string,
  findRow: () => Promise<{ account_id: string } | undefined>,
): Promise<boolean> {
  const recorded = await readRecordedOwner(source, stream);
  if (recorded === accountId) return true;
  const row = await findRow();
  return recorded === undefined && row?.account_id === accountId;
}
