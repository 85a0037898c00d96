import { isErasure } from '../eventTypes.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import type { ReadOptions, StoredEvent } from '../../ports/eventStore.ts';
import { openTexts } from '../encryption/openTexts.ts';
import { asDamage, foundDamaged, lostKey, type StreamSource } from './reportDamage.ts';
import { endsErased } from './erasureLookup.ts';
import type { Flaw } from './streamDamage.ts';
import { checkNews, checkPage, understandAll, type KnownEvent } from './wholeStream.ts';

/** Errors: `stream_damaged` (noted), `store_unavailable`. */
async function readStored(
  source: StreamSource,
  stream: string,
  options: ReadOptions,
): Promise<StoredEvent[]> {
  try {
    return await source.store.readStream(stream, options);
  } catch (error) {
    throw isTurnlogError(error, 'stream_damaged') ? await asDamage(source, stream, error) : error;
  }
}

const isFlaw = (checked: readonly unknown[] | Flaw): checked is Flaw => !Array.isArray(checked);

/**
 * Texts are erased where the stream says so: whoever can write the log could name a destroyed key in
 * any box. An erasure that came after the page was read is the last event of the stream.
 * Errors: `stream_damaged` (noted), `store_unavailable`.
 */
async function requireErasure(
  source: StreamSource,
  stream: string,
  known: readonly KnownEvent[],
): Promise<void> {
  const emptied = known.find(({ recorded }) => recorded.erased)?.recorded;
  if (!emptied || known.some(({ event }) => isErasure(event.type))) return;
  if (await endsErased(source.store, stream)) return;
  const { revision } = emptied;
  const reason = `the key of a text of the event at revision ${revision} is destroyed, and no erasure says so`;
  throw await foundDamaged(source, stream, { reason, revision });
}

/**
 * What events say whose places are right. Errors: `stream_damaged` (noted), `release_too_old`,
 * `key_missing`, `store_unavailable`.
 */
async function understood(
  source: StreamSource,
  stream: string,
  placed: readonly StoredEvent[] | Flaw,
): Promise<KnownEvent[]> {
  if (isFlaw(placed)) throw await foundDamaged(source, stream, placed);
  const readable = await openTexts(source.store.keys, placed);
  for (const { unreadable } of readable)
    if (isTurnlogError(unreadable, 'key_missing')) throw await lostKey(source, stream, unreadable);
  const known = understandAll(readable);
  if (isFlaw(known)) throw await foundDamaged(source, stream, known);
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
): Promise<KnownEvent[]> {
  const events = await readStored(source, stream, options);
  return understood(source, stream, checkPage({ ...options, events }));
}

export interface StreamNews {
  /** What follows the known event, oldest first. */
  news: KnownEvent[];
  /** True where the page reached revision 0. */
  begins: boolean;
}

/**
 * What has come since an event that was read before, from a page of the newest; undefined where
 * that is not among them.
 * Errors: `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function readNews(
  source: StreamSource,
  stream: string,
  known: Pick<StoredEvent, 'id' | 'revision'>,
  limit: number,
): Promise<StreamNews | undefined> {
  const options = { direction: 'backwards', limit, maxBytes: LIMITS.store.pageBytes } as const;
  const events = await readStored(source, stream, options);
  const news = checkNews({ ...options, events }, known);
  return (
    news && {
      news: await understood(source, stream, news),
      begins: events.at(-1)?.revision === 0,
    }
  );
}

/**
 * The event at revision 0 of a stream that has later ones: for who reads only those.
 * Errors: `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function readBeginning(source: StreamSource, stream: string): Promise<KnownEvent> {
  const [first] = await readPage(source, stream, { direction: 'forwards', from: 0, limit: 1 });
  if (first) return first;
  throw await foundDamaged(source, stream, { reason: 'its beginning is missing', revision: 0 });
}
