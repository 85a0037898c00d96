import { hash as digest } from 'node:crypto';
import { canonicalJson } from './canonicalJson.ts';
import type { RecordedEvent } from './event.ts';
import { withoutBoxes } from './protectedJson.ts';
import { commitments } from './protectedText.ts';

/** `prev_hash` of the first event of every stream. */
export const GENESIS_HASH = '0'.repeat(64);

export const sha256 = (text: string): string => digest('sha256', text, 'hex');

/** An event of which data and metadata, without prev_hash and hash, are canonical JSON text. */
interface Canonical {
  id: string;
  stream: string;
  revision: number;
  type: string;
  data: string;
  metadata: string;
}

/**
 * What the hash of an event covers, besides the hash before it; nothing else says so. It is the
 * event as every reader of it has it, in canonical form: its members stand in the order of RFC 8785
 * §3.2.3, so that data is not written a second time. Of a protected text it covers the commitment,
 * `{"sha256": …}`, and not the box. `position` is not among them: it is the store's, and another one
 * in another store.
 */
const coveredText = ({ id, stream, revision, type, data, metadata }: Canonical): string =>
  `{"data":${withoutBoxes(data)},"id":${canonicalJson(id)},"metadata":${metadata},"revision":${revision},"stream":${canonicalJson(stream)},"type":${canonicalJson(type)}}`;

/** sha256(prev_hash ‖ JCS(event without prev_hash and hash)), in hex, over UTF-8. */
export const eventHash = (prevHash: string, event: Canonical): string =>
  sha256(prevHash + coveredText(event));

/** The canonical form of metadata: strings, unless others wrote it. */
function canonicalStrings(metadata: Readonly<Record<string, unknown>>): string {
  const members = Object.keys(metadata)
    .toSorted()
    .map((name) => `${canonicalJson(name)}:${canonicalJson(metadata[name])}`);
  return `{${members.join(',')}}`;
}

/**
 * Why `event` does not continue its stream's chain after `previous` (undefined at the stream's
 * beginning); undefined when it does. Its protected texts stand there as they are stored, as
 * commitments alone, or disclosed; then they are checked as well. `storedData` is the JSON text that
 * its data was decoded from: it is canonical already unless the store has written it anew, and tried
 * first because that is a third of the work. Errors: those of canonicalJson.
 */
export function chainFault(
  event: RecordedEvent,
  previous: { revision: number; hash: string } | undefined,
  storedData?: string,
): string | undefined {
  const revision = (previous?.revision ?? -1) + 1;
  if (event.revision !== revision)
    return previous
      ? `its revision is ${event.revision} where ${revision} is due`
      : 'the event before it is missing';
  // Whatever else stands in the metadata is covered, also what this version does not know.
  const { prev_hash, hash, ...covered } = event.metadata;
  if (prev_hash !== (previous?.hash ?? GENESIS_HASH))
    return 'its prev_hash is not the hash of the event before it';
  const metadata = canonicalStrings(covered);
  const fits = (data: string): boolean => {
    const recomputed = eventHash(prev_hash, { ...event, data, metadata });
    return recomputed === hash;
  };
  return (storedData !== undefined && fits(storedData)) ||
    fits(canonicalJson(commitments(event.data)))
    ? undefined
    : 'its hash does not match its content';
}
