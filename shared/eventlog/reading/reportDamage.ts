/**
 * Inspects streams that were found damaged, records them for health checks, and builds the errors.
 */
import { isTurnlogError, type TurnlogError } from '../../lib/errors/turnlogError.ts';
import type { ReadOptions } from '../../ports/eventStore.ts';
import type { DamagedStreams } from './damagedStreams.ts';
import type { WaitLimits } from '../../lib/time/sleep.ts';
import type { ProtectedStore } from '../encryption/protectedStore.ts';
import type { ReserveRead } from './readMemory.ts';
import {
  damageFromError,
  damageReason,
  releaseTooOldError,
  streamDamagedError,
  type StreamFlaw,
  type StreamDamage,
} from './streamDamage.ts';

/** The store that streams are read from, and the record of damaged ones. */
export interface StreamSource {
  store: Pick<ProtectedStore, 'readStream' | 'keys' | 'leaves'>;
  damaged: DamagedStreams;
  /** The limits of waits for events that the store does not show yet; none by default. */
  waitLimits?: WaitLimits;
  /** Reserves the memory of what a request reads; reads of the service itself need none. */
  reserveRead?: ReserveRead | undefined;
}

/**
 * The first or last revision that the store still shows; null when it shows none. Throws
 * `store_unavailable`.
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

/**
 * Reads the remaining range of a damaged stream and records the damage. Throws `store_unavailable`.
 */
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
 * Records that a stream is damaged. Resolves with the error to throw: `stream_damaged`, or
 * `release_too_old` for an intact stream with events of a newer release. Throws
 * `store_unavailable`.
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
 * Completes a `stream_damaged` error with the known damage. Damage that the store itself reported
 * (deleted or hidden events) is inspected and recorded first. `path` is as in streamDamagedError.
 * Throws `store_unavailable`.
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

/**
 * Records a stream whose key was lost; health reports it until the stream is read without errors.
 * Resolves with the error.
 */
export async function reportLostKey(
  source: StreamSource,
  stream: string,
  error: TurnlogError,
): Promise<TurnlogError> {
  const reason = error.message.replace(/\.$/, '');
  await recordDamage(source, stream, { reason, revision: undefined });
  return error;
}

/** Runs work on a stream's texts, and records a `key_missing` error before rethrowing it. */
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
