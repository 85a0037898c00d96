import { isErasure } from '../eventTypes.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import type { ReadOptions, StoredEvent } from '../../ports/eventStore.ts';
import { openTexts } from '../encryption/openTexts.ts';
import { toDamageError, reportDamage, reportLostKey, type StreamSource } from './reportDamage.ts';
import { endsWithErasure } from './erasureLookup.ts';
import type { StreamFlaw } from './streamDamage.ts';
import {
  checkNewEvents,
  checkPage,
  decodeReadableEvents,
  type DecodedEvent,
} from './wholeStream.ts';

/** Errors: `stream_damaged` (noted), `store_unavailable`. */
async function readStored(
  source: StreamSource,
  stream: string,
  options: ReadOptions,
): Promise<StoredEvent[]> {
  try {
    return await source.store.readStream(stream, options);
  } catch (error) {
    throw isTurnlogError(error, 'stream_damaged')
      ? await toDamageError(source, stream, error)
      : error;
  }
}

const isFlaw = (checked: readonly unknown[] | StreamFlaw): checked is StreamFlaw =>
  !Array.isArray(checked);

/**
 * Texts are erased where the stream says so: whoever can write the log could name a destroyed key in
 * any box. An erasure that came after the page was read is the last event of the stream.
 * Errors: `stream_damaged` (noted), `store_unavailable`.
 */
async function requireErasure(
  source: StreamSource,
  stream: string,
  known: readonly DecodedEvent[],
): Promise<void> {
  const emptied = known.find(({ recorded }) => recorded.erased)?.recorded;
  if (!emptied || known.some(({ event }) => isErasure(event.type))) return;
  if (await endsWithErasure(source.store, stream)) return;
  const { revision } = emptied;
  const reason = `the key of a text of the event at revision ${revision} is destroyed, and no erasure says so`;
  throw await reportDamage(source, stream, { reason, revision });
}

/**
 * What events say whose places are right. Errors: `stream_damaged` (noted), `release_too_old`,
 * `key_missing`, `store_unavailable`.
 */
async function decodeOrReport(
  source: StreamSource,
  stream: string,
  placed: readonly StoredEvent[] | StreamFlaw,
): Promise<DecodedEvent[]> {
  if (isFlaw(placed)) throw await reportDamage(source, stream, placed);
  const readable = await openTexts(source.store.keys, placed);
  for (const { unreadable } of readable)
    if (isTurnlogError(unreadable, 'key_missing'))
      throw await reportLostKey(source, stream, unreadable);
  const known = decodeReadableEvents(readable);
  if (isFlaw(known)) throw await reportDamage(source, stream, known);
  await requireErasure(source, stream, known);
  return known;
}

/**
 * A page of a stream, oldest first, with every event known and none missing.
 * Errors: `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function readPage(
  source: StreamSource,
  stream: string,
  options: ReadOptions,
): Promise<DecodedEvent[]> {
  const events = await readStored(source, stream, options);
  return decodeOrReport(source, stream, checkPage({ ...options, events }));
}

export interface NewStreamEvents {
  /** What follows the known event, oldest first. */
  events: DecodedEvent[];
  /** True where the page reached revision 0. */
  reachesBeginning: boolean;
}

/**
 * What has come since an event that was read before, from a page of the newest; undefined where
 * that is not among them.
 * Errors: `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function readEventsSince(
  source: StreamSource,
  stream: string,
  known: Pick<StoredEvent, 'id' | 'revision'>,
  limit: number,
): Promise<NewStreamEvents | undefined> {
  const options = { direction: 'backwards', limit, maxBytes: LIMITS.store.pageBytes } as const;
  const events = await readStored(source, stream, options);
  const news = checkNewEvents({ ...options, events }, known);
  return (
    news && {
      events: await decodeOrReport(source, stream, news),
      reachesBeginning: events.at(-1)?.revision === 0,
    }
  );
}

/**
 * The event at revision 0 of a stream that has later ones: for who reads only those.
 * Errors: `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function readFirstEvent(source: StreamSource, stream: string): Promise<DecodedEvent> {
  const [first] = await readPage(source, stream, { direction: 'forwards', from: 0, limit: 1 });
  if (first) return first;
  throw await reportDamage(source, stream, { reason: 'its beginning is missing', revision: 0 });
}
