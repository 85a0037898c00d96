import { isErasure } from '../domain/events.ts';
import { isTurnlogError, type TurnlogError } from '../errors.ts';
import { LIMITS } from '../limits.ts';
import type { ReadOptions, StoredEvent } from '../ports/eventStore.ts';
import type { DamagedStreams } from './damagedStreams.ts';
import { openTexts } from './openTexts.ts';
import type { ProtectedStore } from './protectedStore.ts';
import {
  damageOf,
  reasonOf,
  releaseTooOld,
  streamDamaged,
  type Flaw,
  type StreamDamage,
} from './streamDamage.ts';
import { checkNews, checkPage, understandAll, type KnownEvent } from './wholeStream.ts';

/** Where streams are read, and where damaged ones are noted. */
export interface StreamSource {
  store: Pick<ProtectedStore, 'readStream' | 'keys'>;
  damaged: DamagedStreams;
}

/**
 * The revision at one end of what the store still shows; null when it shows nothing.
 * Errors: `store_unavailable`.
 */
async function edgeOf(
  store: StreamSource['store'],
  stream: string,
  direction: ReadOptions['direction'],
): Promise<number | null> {
  try {
    const [event] = await store.readStream(stream, { direction, limit: 1 });
    return event?.revision ?? null;
  } catch (error) {
    if (isTurnlogError(error, 'stream_damaged')) return null;
    throw error;
  }
}

/** Looks at what is left of a damaged stream, and notes it. Errors: `store_unavailable`. */
async function noteDamage(
  { store, damaged }: StreamSource,
  stream: string,
  flaw: Flaw,
): Promise<StreamDamage> {
  const first_revision = await edgeOf(store, stream, 'forwards');
  const last_revision = first_revision === null ? null : await edgeOf(store, stream, 'backwards');
  const damage: StreamDamage = { ...flaw, stream, first_revision, last_revision };
  damaged.note(damage);
  return damage;
}

/**
 * Notes that a stream is damaged. Resolves with the error that says so, or that this release is too
 * old for a stream that is whole.
 * Errors: `store_unavailable`.
 */
export const foundDamaged = async (
  source: StreamSource,
  stream: string,
  flaw: Flaw,
): Promise<TurnlogError> =>
  flaw.newer ? releaseTooOld(stream, flaw) : streamDamaged(await noteDamage(source, stream, flaw));

/**
 * A `stream_damaged` with what is known of the damage. Where the store itself told of it, because
 * events of the stream were deleted or are hidden, the damage is looked at and noted first. `path`
 * is that of streamDamaged.
 * Errors: `store_unavailable`.
 */
export async function asDamage(
  source: StreamSource,
  stream: string,
  error: TurnlogError,
  path?: string,
): Promise<TurnlogError> {
  const damage =
    damageOf(error) ??
    (await noteDamage(source, stream, { reason: reasonOf(stream, error), revision: undefined }));
  return streamDamaged(damage, path);
}

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

/**
 * What work on a stream's texts resolves with. Where a key was lost, health says so from then on, until
 * the stream was read. Errors: those of the work.
 */
export async function notingLostKeys<Result>(
  source: StreamSource,
  stream: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (isTurnlogError(error, 'key_missing'))
      await noteDamage(source, stream, {
        reason: error.message.replace(/\.$/, ''),
        revision: undefined,
      });
    throw error;
  }
}

const isFlaw = (checked: readonly unknown[] | Flaw): checked is Flaw => !Array.isArray(checked);

/** True where a stream ends with its erasure. Errors: `stream_damaged` (noted), `store_unavailable`. */
export async function saysErased(source: StreamSource, stream: string): Promise<boolean> {
  const [last] = await readStored(source, stream, { direction: 'backwards', limit: 1 });
  return last !== undefined && isErasure(last.type);
}

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
  if (await saysErased(source, stream)) return;
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
  const lost = readable.find(({ unreadable }) => isTurnlogError(unreadable, 'key_missing'));
  if (lost) await notingLostKeys(source, stream, () => Promise.reject(lost.unreadable!));
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
