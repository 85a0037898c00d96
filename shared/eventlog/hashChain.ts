import { createHash, hash as digest } from 'node:crypto';
import type { StoredEvent } from '../ports/eventStore.ts';
import { canonicalJson, writeCanonicalJson } from './canonicalJson.ts';
import type { EventMetadata, RecordedEvent } from './event.ts';
import { coveredJson, isUnescaped } from './plainJson.ts';
import { toCommitments } from './encryption/protectedText.ts';

/** `prev_hash` of the first event of every stream. */
export const GENESIS_HASH = '0'.repeat(64);

export const sha256 = (text: string): string => digest('sha256', text, 'hex');

/** The length and the SHA-256 in hex of the canonical JSON of a plain object. */
interface JsonDigest {
  sha256: string;
  chars: number;
}

/** The digest of the canonical JSON of a plain object, taken in slices for the account. */
export async function digestOfJson(value: object, accountId: string): Promise<JsonDigest> {
  const hash = createHash('sha256');
  let chars = 0;
  const write = (text: string): void => {
    hash.update(text);
    chars += text.length;
  };
  await writeCanonicalJson(value, { accountId, write });
  return { sha256: hash.digest('hex'), chars };
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
 * between stores. Every value but the revision is JSON text.
 */
const coveredText = ({ id, stream, revision, type, data, metadata }: Canonical): string =>
  `{"data":${data},"id":${id},"metadata":${metadata},"revision":${revision},"stream":${stream},"type":${type}}`;

/**
 * sha256(prev_hash ‖ JCS(event without prev_hash and hash)), in hex, over UTF-8. `data` must have
 * its ciphertexts removed.
 */
export const eventHash = (prevHash: string, event: Canonical): string =>
  sha256(
    prevHash +
      coveredText({
        ...event,
        id: canonicalJson(event.id),
        stream: canonicalJson(event.stream),
        type: canonicalJson(event.type),
      }),
  );

/** The revision and hash that the next event of a stream continues. */
export interface Link {
  revision: number;
  hash: string;
}

/** The end of metadata as `encodeEvent` writes it: three texts around two hashes. */
const [PREV_HASH, HASH, END] = [',"prev_hash":"', '","hash":"', '"}'];
const HASH_LENGTH = GENESIS_HASH.length;
const LINKS_LENGTH = PREV_HASH.length + HASH.length + END.length + 2 * HASH_LENGTH;

/**
 * The hashes that an event claims, if they stand as written: not compared with anything, and possibly
 * no hashes.
 */
export function claimedHashes({
  metadata,
}: Pick<StoredEvent, 'metadata'>): { prevHash: string; hash: string } | undefined {
  const at = metadata.length - LINKS_LENGTH;
  const prev = at + PREV_HASH.length;
  const own = prev + HASH_LENGTH + HASH.length;
  // The first quote after the beginning of each hash is the one at its end.
  return metadata.startsWith(PREV_HASH, at) &&
    metadata.indexOf('"', prev) === prev + HASH_LENGTH &&
    metadata.startsWith(HASH, prev + HASH_LENGTH) &&
    metadata.indexOf('"', own) === own + HASH_LENGTH &&
    metadata.endsWith(END)
    ? {
        prevHash: metadata.slice(prev, prev + HASH_LENGTH),
        hash: metadata.slice(own, own + HASH_LENGTH),
      }
    : undefined;
}

/** The text before each value of metadata as `encodeEvent` writes it. */
const NAMES = [
  '{"account_id":"',
  ',"key_id":"',
  ',"request_id":"',
  ',"causation_id":"',
  ',"recorded_at":"',
];

/** Metadata without its hashes in canonical form, if it is stored as written. */
function canonicalMetadata(metadata: string): string | undefined {
  if (!isUnescaped(metadata)) return undefined;
  const values: string[] = [];
  let at = 0;
  for (const name of NAMES) {
    const from = at + name.length;
    const end = metadata.startsWith(name, at) ? metadata.indexOf('"', from) : -1;
    if (end < 0) return undefined;
    values.push(metadata.slice(from, end));
    at = end + 1;
  }
  if (at !== metadata.length - LINKS_LENGTH) return undefined;
  const [account, key, request, causation, recorded] = values;
  return `{"account_id":"${account}","causation_id":"${causation}","key_id":"${key}","recorded_at":"${recorded}","request_id":"${request}"}`;
}

/** Ids, names of streams and types of events that are canonical in quotes. */
const PLAIN_NAME = /^[\w.:-]+$/;

/**
 * The hash of an event that is stored exactly as it was written, without decoding it. Undefined for any
 * other event, which may still be valid, and for one that claims another previous hash than this one.
 */
function hashAsWritten(event: StoredEvent, previousHash?: string): string | undefined {
  const claimed = claimedHashes(event);
  if (!claimed || claimed.prevHash !== (previousHash ?? claimed.prevHash)) return undefined;
  const { id, stream, type } = event;
  if (!PLAIN_NAME.test(id) || !PLAIN_NAME.test(stream) || !PLAIN_NAME.test(type)) return undefined;
  const metadata = canonicalMetadata(event.metadata);
  const data = metadata && coveredJson(event.data);
  if (metadata === undefined || data === undefined) return undefined;
  const covered = coveredText({
    ...event,
    id: `"${id}"`,
    stream: `"${stream}"`,
    type: `"${type}"`,
    data,
    metadata,
  });
  return sha256(claimed.prevHash + covered) === claimed.hash ? claimed.hash : undefined;
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
export function findChainFault(
  event: RecordedEvent,
  previous: Link | undefined,
): string | undefined {
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

/** The hash recorded in an event; empty when it has none or cannot be decoded. */
export function recordedHash({ metadata }: Pick<StoredEvent, 'metadata'>): string {
  // Turnlog writes it at the end, where it is found without parsing the metadata.
  const claimed = claimedHashes({ metadata })?.hash;
  if (claimed !== undefined) return claimed;
  try {
    const { hash } = JSON.parse(metadata) as Partial<EventMetadata>;
    return typeof hash === 'string' ? hash : '';
  } catch {
    return '';
  }
}
