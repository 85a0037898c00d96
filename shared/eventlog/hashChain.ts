import { hash as digest } from 'node:crypto';
import type { StoredEvent } from '../ports/eventStore.ts';
import { canonicalJson } from './canonicalJson.ts';
import type { RecordedEvent } from './event.ts';
import { isPlainCanonical } from './plainJson.ts';
import { withoutBoxes } from './encryption/protectedJson.ts';
import { toCommitments } from './encryption/protectedText.ts';

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
  `{"data":${data},"id":${canonicalJson(id)},"metadata":${metadata},"revision":${revision},"stream":${canonicalJson(stream)},"type":${canonicalJson(type)}}`;

/**
 * sha256(prev_hash ‖ JCS(event without prev_hash and hash)), in hex, over UTF-8. What stands in the
 * data is covered: a store's boxes are to be left out before.
 */
export const eventHash = (prevHash: string, event: Canonical): string =>
  sha256(prevHash + coveredText(event));

/** The last event of a stream, for the one that follows it. */
export interface Link {
  revision: number;
  hash: string;
}

/** A string that is its own canonical form. */
const PLAIN = '("[^"\\\\\\u0000-\\u001f\\ud800-\\udfff]*")';
const HEX = '"([0-9a-f]{64})"';
/** Metadata as `encodeEvent` writes it. */
const WRITTEN = new RegExp(
  `^\\{"account_id":${PLAIN},"key_id":${PLAIN},"request_id":${PLAIN},"causation_id":${PLAIN},"recorded_at":${PLAIN},"prev_hash":${HEX},"hash":${HEX}\\}$`,
);
/** What is left of a text that is no box: readers may take it for another commitment. */
const BESIDE_COMMITMENT = /(?<!\{)"sha256":|"sha256":(?!"[0-9a-f]{64}"\})/;

/**
 * The hash of an event that stands in the store as it was written and continues its chain after
 * `previous`, without decoding it; undefined for any other, which may fit as well.
 */
export function writtenHash(
  { id, stream, revision, type, data, metadata }: StoredEvent,
  previous: Link | undefined,
): string | undefined {
  const [, account, key, request, causation, at, prevHash, hash] = WRITTEN.exec(metadata) ?? [];
  if (revision !== (previous?.revision ?? -1) + 1) return undefined;
  if (hash === undefined || prevHash !== (previous?.hash ?? GENESIS_HASH)) return undefined;
  const covered = withoutBoxes(data);
  if (BESIDE_COMMITMENT.test(covered) || !isPlainCanonical(covered)) return undefined;
  const canonical = `{"account_id":${account},"causation_id":${causation},"key_id":${key},"recorded_at":${at},"request_id":${request}}`;
  const event = { id, stream, revision, type, data: covered, metadata: canonical };
  return eventHash(prevHash, event) === hash ? hash : undefined;
}

/** The canonical form of metadata: strings, unless others wrote it. */
function canonicalStrings(metadata: Readonly<Record<string, unknown>>): string {
  const members = Object.keys(metadata)
    .toSorted()
    .map((name) => `${canonicalJson(name)}:${canonicalJson(metadata[name])}`);
  return `{${members.join(',')}}`;
}

/**
 * Why `event` does not continue its stream's chain after `previous` (undefined at the stream's
 * beginning); undefined when it does, however its store writes its JSON. Its protected texts stand
 * there as they are stored, as commitments alone, or disclosed; then they are checked as well.
 * Errors: those of canonicalJson.
 */
export function chainFault(event: RecordedEvent, previous: Link | undefined): string | undefined {
  const revision = (previous?.revision ?? -1) + 1;
  if (event.revision !== revision)
    return previous
      ? `its revision is ${event.revision} where ${revision} is due`
      : 'the event before it is missing';
  // Whatever else stands in the metadata is covered, also what this version does not know.
  const { prev_hash, hash, ...covered } = event.metadata;
  if (prev_hash !== (previous?.hash ?? GENESIS_HASH))
    return 'its prev_hash is not the hash of the event before it';
  const data = canonicalJson(toCommitments(event.data));
  const metadata = canonicalStrings(covered);
  return eventHash(prev_hash, { ...event, data, metadata }) === hash
    ? undefined
    : 'its hash does not match its content';
}
