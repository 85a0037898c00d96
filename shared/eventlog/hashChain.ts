import { createHash, hash as digest } from 'node:crypto';
import type { StoredEvent } from '../ports/eventStore.ts';
import { canonicalJson, writeCanonicalJson } from './canonicalJson.ts';
import type { RecordedEvent } from './event.ts';
import { isPlainCanonical } from './plainJson.ts';
import { withoutBoxes } from './encryption/protectedJson.ts';
import { toCommitments } from './encryption/protectedText.ts';

/** `prev_hash` of the first event of every stream. */
export const GENESIS_HASH = '0'.repeat(64);

export const sha256 = (text: string): string => digest('sha256', text, 'hex');

/** The SHA-256 in hex of the canonical JSON of a plain object, taken in slices for the account. */
export async function sha256OfJson(value: object, accountId: string): Promise<string> {
  const hash = createHash('sha256');
  await writeCanonicalJson(value, { accountId, write: (text) => void hash.update(text) });
  return hash.digest('hex');
}

/** An event whose data and metadata (without prev_hash and hash) are canonical JSON text. */
interface Canonical {
  id: string;
  stream: string;
  revision: number;
  type: string;
  data: string;
  metadata: string;
}

/**
 * The text that an event's hash covers besides the previous hash, with members in the order of RFC
 * 8785 §3.2.3 so that data need not be serialized again. For a protected text it covers the
 * commitment, `{"sha256": …}`, not the ciphertext. It does not cover `position`, which differs
 * between stores.
 */
const coveredText = ({ id, stream, revision, type, data, metadata }: Canonical): string =>
  `{"data":${data},"id":${canonicalJson(id)},"metadata":${metadata},"revision":${revision},"stream":${canonicalJson(stream)},"type":${canonicalJson(type)}}`;

/**
 * sha256(prev_hash ‖ JCS(event without prev_hash and hash)), in hex, over UTF-8. `data` must have
 * its ciphertexts removed.
 */
export const eventHash = (prevHash: string, event: Canonical): string =>
  sha256(prevHash + coveredText(event));

/** The revision and hash that the next event of a stream continues. */
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
/** The remains of a malformed protected text, which readers might take for another commitment. */
const BESIDE_COMMITMENT = /(?<!\{)"sha256":|"sha256":(?!"[0-9a-f]{64}"\})/;

/**
 * The hash of an event that is stored exactly as it was written, without decoding it. Undefined for any
 * other event, which may still be valid, and for one that claims another previous hash than this one.
 */
function hashAsWritten(
  { id, stream, revision, type, data, metadata }: StoredEvent,
  previousHash?: string,
): string | undefined {
  const [, account, key, request, causation, at, prevHash, hash] = WRITTEN.exec(metadata) ?? [];
  if (hash === undefined || prevHash !== (previousHash ?? prevHash)) return undefined;
  const covered = withoutBoxes(data);
  if (BESIDE_COMMITMENT.test(covered) || !isPlainCanonical(covered)) return undefined;
  const canonical = `{"account_id":${account},"causation_id":${causation},"key_id":${key},"recorded_at":${at},"request_id":${request}}`;
  const event = { id, stream, revision, type, data: covered, metadata: canonical };
  return eventHash(prevHash!, event) === hash ? hash : undefined;
}

/**
 * The hash of an event that is stored exactly as it was written and continues its chain after
 * `previous`, without decoding it. Undefined for any other event, which may still be valid.
 */
export const writtenHash = (stored: StoredEvent, previous: Link | undefined): string | undefined =>
  stored.revision === (previous?.revision ?? -1) + 1
    ? hashAsWritten(stored, previous?.hash ?? GENESIS_HASH)
    : undefined;

/**
 * True for an event that is stored exactly as it was written, and whose hash is that of its content after
 * the previous hash that it claims. False for any other event, which may still be valid.
 */
export const isAsWritten = (stored: StoredEvent): boolean => hashAsWritten(stored) !== undefined;

/** The end of metadata as `encodeEvent` writes it, and its length. */
const LINKS = /^,"prev_hash":"([0-9a-f]{64})","hash":"([0-9a-f]{64})"\}$/;
const LINKS_LENGTH = 154;

/** The hashes that an event claims, if they stand as written; not compared with anything. */
export function claimedHashes({
  metadata,
}: Pick<StoredEvent, 'metadata'>): { prevHash: string; hash: string } | undefined {
  const [, prevHash, hash] = LINKS.exec(metadata.slice(-LINKS_LENGTH)) ?? [];
  return prevHash === undefined || hash === undefined ? undefined : { prevHash, hash };
}

/** The canonical form of metadata. Values are strings unless another program wrote them. */
function canonicalStrings(metadata: Readonly<Record<string, unknown>>): string {
  const members = Object.keys(metadata)
    .toSorted()
    .map((name) => `${canonicalJson(name)}:${canonicalJson(metadata[name])}`);
  return `{${members.join(',')}}`;
}

/**
 * Why `event` does not continue its stream's chain after `previous` (undefined at the beginning);
 * undefined when it does. The store may format its JSON differently. Protected texts may be stored,
 * committed to or disclosed; disclosed texts are checked too.
 */
export function chainFault(event: RecordedEvent, previous: Link | undefined): string | undefined {
  const revision = (previous?.revision ?? -1) + 1;
  if (event.revision !== revision)
    return previous
      ? `its revision is ${event.revision} instead of ${revision}`
      : 'the event before it is missing';
  // The hash covers all other metadata, including fields that this version does not know.
  const { prev_hash, hash, ...covered } = event.metadata;
  if (prev_hash !== (previous?.hash ?? GENESIS_HASH))
    return 'its prev_hash is not the hash of the event before it';
  const data = canonicalJson(toCommitments(event.data));
  const metadata = canonicalStrings(covered);
  return eventHash(prev_hash, { ...event, data, metadata }) === hash
    ? undefined
    : 'its hash does not match its content';
}
