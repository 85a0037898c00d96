import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { decodeBase64 } from '../tlog/base64.ts';
import { parseConsistency } from '../tlog/consistencyFile.ts';
import type { CheckpointText } from '../tlog/checkpoint.ts';
import { leafEntry } from '../tlog/leaf.ts';
import { HASH_BYTES, leafHash } from '../tlog/merkle.ts';
import { formatVkey, parseVkey, type NoteKey } from '../tlog/noteKeys.ts';
import { parseProof } from '../tlog/proofFile.ts';
import { createInclusionChecker } from '../tlog/subtrees.ts';
import { verifyConsistency, verifyInclusion, type TreeHead } from '../tlog/verify.ts';
import {
  isBundleLine,
  type BundleFile,
  type SmallFileName,
  BUNDLE_FILES,
  isManifest,
  type BundleFileName,
  type Manifest,
} from './bundleFormat.ts';
import { openCheckpoint } from './openCheckpoint.ts';
import { createStreamChecker, type SeenStream } from './sessionChain.ts';
import { requireCosigners, type Cosigners, type TrustedWitnesses } from '../witnessPolicy.ts';
import { LIMITS } from '../../limits.ts';
import { canonicalJson } from '../../eventlog/canonicalJson.ts';

const NEWLINE = 0x0a;

/** Throws `proof_invalid` for bytes that are not UTF-8. */
function textOf(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw proofInvalidError(`${what} is not UTF-8.`, error);
  }
}

/** Throws `proof_invalid` for a text that is not canonical JSON. */
function parsed(text: string, what: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    // Parsers may read other texts differently, for example when a name occurs twice.
    if (canonicalJson(value) === text) return value;
  } catch {
    // Invalid JSON gives the same error.
  }
  throw proofInvalidError(`${what} is not canonical JSON.`);
}

/**
 * Reads the next file of a bundle. Throws `proof_invalid` when it is not the expected file.
 */
async function nextFile(
  files: AsyncIterator<BundleFile>,
  expected: BundleFileName,
): Promise<BundleFile> {
  const next = await files.next();
  if (next.done) throw proofInvalidError(`The bundle has no ${expected}.`);
  const { name, isFile } = next.value;
  if (name !== expected || !isFile)
    throw proofInvalidError(
      `A bundle has the files ${BUNDLE_FILES.join(', ')} in this order: where ${expected} is due stands ${isFile ? '' : 'what is no file of a bundle, '}${JSON.stringify(name.slice(0, 100))}.`,
    );
  return next.value;
}

/** Reads the text of a small file. Throws `proof_invalid` when it is too large. */
async function smallText({ name, bytes, content }: BundleFile): Promise<string> {
  const maxBytes = LIMITS.proof.fileBytes;
  if (bytes > maxBytes) throw proofInvalidError(`${name} has more than ${maxBytes} bytes.`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return textOf(Buffer.concat(chunks), name);
}

function parseManifest(text: string): Manifest {
  if (!text.endsWith('\n')) throw proofInvalidError('manifest has no line feed at its end.');
  const manifest = parsed(text.slice(0, -1), 'manifest');
  if ((manifest as { turnlog_bundle?: unknown } | null)?.turnlog_bundle === 1)
    throw proofInvalidError(
      'The bundle is of version 1, which proves only its last event: those before it may have been rewritten. Ask for a new export of the session.',
    );
  if (!isManifest()(manifest))
    throw proofInvalidError('manifest is not of a bundle that is known.');
  return manifest;
}

/** `bytes` is the size of a line including its line feed. */
function requireWithin(bytes: number, what: string): void {
  const maxBytes = LIMITS.proof.lineBytes;
  if (bytes > maxBytes) throw proofInvalidError(`${what} has more than ${maxBytes} bytes.`);
}

/**
 * Parses canonical JSON lines and holds at most one line in memory. Throws `proof_invalid`.
 */
async function* jsonLines({ name, content }: BundleFile): AsyncGenerator {
  let rest: Uint8Array[] = [];
  let heldBytes = 0;
  let line = 0;
  for await (const chunk of content) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      line += 1;
      const what = `Line ${line} of ${name}`;
      requireWithin(heldBytes + end + 1 - from, what);
      yield parsed(textOf(Buffer.concat([...rest, chunk.subarray(from, end)]), what), what);
      [rest, heldBytes, from] = [[], 0, end + 1];
    }
    heldBytes += chunk.length - from;
    requireWithin(heldBytes + 1, `Line ${line + 1} of ${name}`);
    // Copied, because the next read may reuse the buffer of the chunk.
    if (from < chunk.length) rest.push(Buffer.from(chunk.subarray(from)));
  }
  if (heldBytes > 0) throw proofInvalidError(`Line ${line + 1} of ${name} has no end.`);
}

/** Trusted values that the verifier obtained from other sources. */
export interface TrustedValues extends TrustedWitnesses {
  /** The vkey of the log. When absent, the vkey in the bundle is used. */
  vkey?: string | undefined;
  /**
   * A published checkpoint, which must be the checkpoint of the bundle, or the older one that the
   * bundle's is proven to extend.
   */
  checkpoint?: string | undefined;
}

/** The content of a valid bundle. */
export interface VerifiedBundle extends Cosigners {
  session_id: string;
  seen: SeenStream;
  checkpoint: CheckpointText;
  /** Index of the leaf of the last event. */
  index: number;
  /** The size of an older tree that the checkpoint is proven to extend. */
  extends: number | undefined;
  vkey: string;
}

type Small = Record<Exclude<SmallFileName, 'manifest'>, string>;

/** Requires that a checkpoint of the reader is one of these two trees. */
function requireKnown(
  checkpoint: CheckpointText,
  older: TreeHead | undefined,
  { published, key }: { published: string | undefined; key: NoteKey },
): void {
  if (published === undefined) return;
  const other = openCheckpoint(published, [key]).checkpoint;
  const tree = [checkpoint, older].find((head) => head?.size === other.size);
  if (!tree)
    throw proofInvalidError(
      `The bundle's proof leads to a tree of ${checkpoint.size} leaves, and the checkpoint that was given is of ${other.size}: ask for a bundle that is exported with that checkpoint.`,
    );
  if (!other.root.equals(tree.root))
    throw proofInvalidError(
      'The checkpoint that was given has another root than the one of the bundle: the log has shown two histories.',
    );
}

/** The older tree of a bundle, undefined without one. Throws `proof_invalid`. */
function verifyOlder(text: string, checkpoint: CheckpointText): TreeHead | undefined {
  if (text === '') return undefined;
  const { older, hashes } = parseConsistency(text);
  if (verifyConsistency(hashes, older, checkpoint)) return older;
  throw proofInvalidError(
    `The consistency proof does not lead from the older tree of ${older.size} leaves to the checkpoint.`,
  );
}

/** Verifies the small files except the manifest, before any event is read. */
function verifyTree(small: Small, trusted: TrustedValues) {
  const key = parseVkey((trusted.vkey ?? small.vkey).trimEnd());
  const { note, checkpoint } = openCheckpoint(small.checkpoint, [key]);
  const { extra, checkpoint: proven, ...last } = parseProof(small['session.tlog-proof']);
  if (extra)
    throw proofInvalidError('The proof of a bundle has no extra data: nothing vouches for it.');
  if (proven !== small.checkpoint) throw proofInvalidError('The proof is not of the checkpoint.');
  const older = verifyOlder(small.consistency, checkpoint);
  requireKnown(checkpoint, older, { published: trusted.checkpoint, key });
  const cosigners = requireCosigners(note, trusted);
  return { last, shown: { checkpoint, extends: older?.size, vkey: formatVkey(key), ...cosigners } };
}

/** Checks the lines of `events.jsonl`. Throws `proof_invalid` for the first that does not fit. */
function createLineChecker(stream: string, checkpoint: CheckpointText) {
  const { add, seen } = createStreamChecker(stream);
  const isIncluded = createInclusionChecker(checkpoint);
  let leaf = -1;

  function fault(line: unknown): string | undefined {
    if (!isBundleLine(line)) return 'its line is none of a bundle';
    const unfit = add(line.event);
    if (unfit !== undefined) return unfit;
    const hashes = line.hashes.map((hash) => decodeBase64(hash));
    if (hashes.some((hash) => hash?.length !== HASH_BYTES)) return 'its proof has a wrong hash';
    leaf = line.leaf;
    return isIncluded(leafHash(leafEntry(seen.hash, leaf)), leaf, hashes as Uint8Array[])
      ? undefined
      : `the checkpoint's tree does not have it at leaf ${leaf}: it was changed after it was recorded, or added`;
  }

  return {
    seen,
    /** The leaf of the last line. */
    leaf: () => leaf,
    check(line: unknown): void {
      const revision = seen.events;
      const lineFault = fault(line);
      if (lineFault !== undefined)
        throw proofInvalidError(`The event at revision ${revision} does not fit: ${lineFault}.`);
    },
  };
}

/**
 * Verifies a bundle against the trusted values alone, in constant memory. Throws `proof_invalid`
 * with a sentence that names the first mismatch.
 */
export async function verifyBundle(
  bundle: AsyncIterable<BundleFile>,
  trusted: TrustedValues,
  onProgress: (events: number) => void,
): Promise<VerifiedBundle> {
  const files = bundle[Symbol.asyncIterator]();
  const read = async (name: SmallFileName) => smallText(await nextFile(files, name));
  const manifest = parseManifest(await read('manifest'));
  const small = {
    vkey: await read('vkey'),
    checkpoint: await read('checkpoint'),
    'session.tlog-proof': await read('session.tlog-proof'),
    consistency: await read('consistency'),
  };
  const { session_id, events } = manifest;
  const { last, shown } = verifyTree(small, trusted);
  const lines = createLineChecker(sessionStream(session_id), shown.checkpoint);
  const { seen } = lines;
  for await (const line of jsonLines(await nextFile(files, 'events.jsonl'))) {
    lines.check(line);
    onProgress(seen.events);
  }
  if (seen.events !== events)
    throw proofInvalidError(
      `The bundle has ${seen.events} events, and its manifest says ${events}.`,
    );
  if (!(await files.next()).done) throw proofInvalidError('The bundle has further files.');
  const { index, hashes } = last;
  const leaf = leafHash(leafEntry(seen.hash, index));
  if (index !== lines.leaf() || !verifyInclusion(hashes, index, leaf, shown.checkpoint))
    throw proofInvalidError(
      'session.tlog-proof does not lead from the last event to the checkpoint: events were changed, added or cut off.',
    );
  return { session_id, seen, index, ...shown };
}
