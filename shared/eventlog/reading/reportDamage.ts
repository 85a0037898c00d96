/** Where damage is met while streams are read: it is looked at, noted for health, and told. */
import { isTurnlogError, type TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { ReadOptions } from '../../ports/eventStore.ts';
import type { DamagedStreams } from './damagedStreams.ts';
import type { ProtectedStore } from '../encryption/protectedStore.ts';
import {
  damageFromError,
  damageReason,
  releaseTooOldError,
  streamDamagedError,
  type StreamFlaw,
  type StreamDamage,
} from './streamDamage.ts';

/** Where streams are read, and where damaged ones are noted. */
export interface StreamSource {
  store: Pick<ProtectedStore, 'readStream' | 'keys'>;
  damaged: DamagedStreams;
}

/**
 * The revision at one end of what the store still shows; null when it shows nothing.
 * Errors: `store_unavailable`.
 */
async function readEdgeRevision(
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
async function recordDamage(
  { store, damaged }: StreamSource,
  stream: string,
  flaw: StreamFlaw,
): Promise<StreamDamage> {
  const first_revision = await readEdgeRevision(store, stream, 'forwards');
  const last_revision =
    first_revision === null ? null : await readEdgeRevision(store, stream, 'backwards');
  const damage: StreamDamage = { ...flaw, stream, first_revision, last_revision };
  damaged.record(damage);
  return damage;
}

/**
 * Notes that a stream is damaged. Resolves with the error that says so, or that this release is too
 * old for a stream that is whole.
 * Errors: `store_unavailable`.
 */
export const reportDamage = async (
  source: StreamSource,
  stream: string,
  flaw: StreamFlaw,
): Promise<TurnlogError> =>
  flaw.newer
    ? releaseTooOldError(stream, flaw)
    : streamDamagedError(await recordDamage(source, stream, flaw));

/**
 * A `stream_damaged` with what is known of the damage. Where the store itself told of it, because
 * events of the stream were deleted or are hidden, the damage is looked at and noted first. `path`
 * is that of streamDamaged.
 * Errors: `store_unavailable`.
 */
export async function toDamageError(
  source: StreamSource,
  stream: string,
  error: TurnlogError,
  path?: string,
): Promise<TurnlogError> {
  const damage =
    damageFromError(error) ??
    (await recordDamage(source, stream, {
      reason: damageReason(stream, error),
      revision: undefined,
    }));
  return streamDamagedError(damage, path);
}

/** Notes that a key of a stream was lost; health says so until it was read. Resolves with the error. */
export async function reportLostKey(
  source: StreamSource,
  stream: string,
  error: TurnlogError,
): Promise<TurnlogError> {
  const reason = error.message.replace(/\.$/, '');
  await recordDamage(source, stream, { reason, revision: undefined });
  return error;
}

/** What work on a stream's texts resolves with. Errors: those of the work; `key_missing` is noted. */
export async function withLostKeyReports<Result>(
  source: StreamSource,
  stream: string,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw isTurnlogError(error, 'key_missing') ? await reportLostKey(source, stream, error) : error;
  }
}
