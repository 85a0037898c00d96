import { decodeEvent } from '../../eventlog/codec.ts';
import { replaceCiphertexts } from '../../eventlog/encryption/protectedJson.ts';
import { isErasure } from '../../eventlog/eventTypes.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';
import { reportDamage, type StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { findContentFlaw } from '../leaves/leafComparison.ts';
import { reportMissingLeaf } from '../leaves/missingLeaf.ts';
import type { TileReader } from '../tileStore.ts';
import { proveEvent } from '../proof/proveEvent.ts';
import { toProvenEvent } from '../proof/sessionProof.ts';
import { createReceipt, type ErasureReceipt, type ShownErasure } from './receipt.ts';

interface ReceiptSource extends StreamSource {
  tiles: TileReader;
}

const commitment = (_box: string, sha256: string): string =>
  JSON.stringify({ sha256, erased: true });

/** The event as its hash covers it: no key is needed to show it. */
function showErasure(stored: StoredEvent): ShownErasure {
  const { id, stream, revision, type, data, metadata } = decodeEvent({
    ...stored,
    data: replaceCiphertexts(stored.data, commitment),
  });
  return { id, stream, revision, type, data: data as object, metadata };
}

/**
 * The receipt of a stream's erasure; undefined for a stream that is not erased. Errors:
 * `proof_pending` while no checkpoint covers the erasure, `proof_invalid`, `stream_damaged`,
 * `store_unavailable`.
 */
export async function readReceipt(
  source: ReceiptSource,
  stream: string,
): Promise<ErasureReceipt | undefined> {
  const [last] = await source.store.readStream(stream, { direction: 'backwards', limit: 1 });
  if (!last || !isErasure(last.type)) return undefined;
  const flaw = findContentFlaw(last);
  if (flaw) throw await reportDamage(source, stream, flaw);
  const proof = await proveEvent(source.tiles, toProvenEvent(last));
  if (proof) return createReceipt(showErasure(last), proof);
  throw await reportMissingLeaf(source, last);
}

/** The same, but undefined while no checkpoint covers the erasure. */
export const findReceipt = (
  source: ReceiptSource,
  stream: string,
): Promise<ErasureReceipt | undefined> =>
  readReceipt(source, stream).catch((error: unknown) => {
    if (isTurnlogError(error, 'proof_pending')) return undefined;
    throw error;
  });
