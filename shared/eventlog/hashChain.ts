import { hash } from 'node:crypto';
import { canonicalJson } from './canonicalJson.ts';
import type { RecordedEvent } from './event.ts';

/** `prev_hash` of the first event of every stream. */
export const GENESIS_HASH = '0'.repeat(64);

export const sha256 = (text: string): string => hash('sha256', text, 'hex');

interface Link {
  id: string;
  stream: string;
  revision: number;
  type: string;
  account_id: string;
  recorded_at: string;
}

/**
 * sha256(prev_hash ‖ JCS({id, stream, revision, type, data, account_id, recorded_at})), in hex,
 * over UTF-8. `canonicalData` is the JCS text of the data; the members stand in the order of RFC
 * 8785 §3.2.3, so the text around it is the canonical form of the whole without data being written
 * twice.
 */
export const eventHash = (prevHash: string, link: Link, canonicalData: string): string =>
  sha256(
    `${prevHash}{"account_id":${canonicalJson(link.account_id)},"data":${canonicalData},"id":${canonicalJson(link.id)},"recorded_at":${canonicalJson(link.recorded_at)},"revision":${link.revision},"stream":${canonicalJson(link.stream)},"type":${canonicalJson(link.type)}}`,
  );

/**
 * Why `event` does not continue its stream's chain after `previous` (undefined at the stream's
 * beginning); undefined when it does.
 */
export function chainFault(
  event: RecordedEvent,
  previous: { revision: number; hash: string } | undefined,
): string | undefined {
  const revision = (previous?.revision ?? -1) + 1;
  if (event.revision !== revision)
    return previous
      ? `its revision is ${event.revision} where ${revision} is due`
      : 'the event before it is missing';
  const prevHash = previous?.hash ?? GENESIS_HASH;
  if (event.metadata.prev_hash !== prevHash)
    return 'its prev_hash is not the hash of the event before it';
  const { account_id, recorded_at } = event.metadata;
  const recomputed = eventHash(
    prevHash,
    { ...event, account_id, recorded_at },
    canonicalJson(event.data),
  );
  return recomputed === event.metadata.hash ? undefined : 'its hash does not match its content';
}
