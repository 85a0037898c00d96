import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { CheckpointText } from '../tlog/checkpoint.ts';
import { verifyCosignature } from '../tlog/cosignature.ts';
import { leafEntry } from '../tlog/leaf.ts';
import { leafHash } from '../tlog/merkle.ts';
import type { Note } from '../tlog/note.ts';
import { formatVkey, parseVkey, type NoteKey } from '../tlog/noteKeys.ts';
import { parseProof } from '../tlog/proofFile.ts';
import { verifyInclusion } from '../tlog/verify.ts';
import {
  type BundleFile,
  type SmallFileName,
  BUNDLE_FILES,
  isManifest,
  type BundleFileName,
  type Manifest,
} from './bundleFormat.ts';
import { openCheckpoint } from './openCheckpoint.ts';
import { createStreamChecker, type SeenStream } from './sessionChain.ts';
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
export interface Known {
  /** The vkey of the log. When absent, the vkey in the bundle is used. */
  vkey?: string | undefined;
  /** A published checkpoint, which must be the checkpoint of the bundle. */
  checkpoint?: string | undefined;
  /** Vkeys of witnesses. Unless empty, at least one of them must have cosigned. */
  witnesses: readonly string[];
}

/** The content of a valid bundle. */
export interface VerifiedBundle {
  session_id: string;
  seen: SeenStream;
  checkpoint: CheckpointText;
  /** Index of the leaf of the last event. */
  index: number;
  vkey: string;
  /** The names of the trusted witnesses that have cosigned. */
  cosigned: string[];
}

type Small = Record<SmallFileName, string>;

function requireSame(
  checkpoint: CheckpointText,
  published: string | undefined,
  key: NoteKey,
): void {
  if (published === undefined) return;
  const other = openCheckpoint(published, [key]).checkpoint;
  if (other.size !== checkpoint.size)
    throw proofInvalidError(
      `The bundle's proof leads to a tree of ${checkpoint.size} leaves, and the checkpoint that was given is of ${other.size}: ask for a bundle that is exported with that checkpoint.`,
    );
  if (!other.root.equals(checkpoint.root))
    throw proofInvalidError(
      'The checkpoint that was given has another root than the one of the bundle: the log has shown two histories.',
    );
}

function cosigners({ text, signatures }: Note, witnesses: readonly string[]): string[] {
  const names = witnesses
    .map(parseVkey)
    .flatMap((key) =>
      signatures.some((line) => verifyCosignature(text, key, line) !== undefined) ? [key.name] : [],
    );
  if (witnesses.length > 0 && names.length === 0)
    throw proofInvalidError('None of the witnesses that were given has cosigned the checkpoint.');
  return names;
}

/** Verifies the small files against the hash of the last event. */
function verifyHead(small: Small, hash: string, trusted: Known) {
  const key = parseVkey((trusted.vkey ?? small.vkey).trimEnd());
  const { note, checkpoint } = openCheckpoint(small.checkpoint, [key]);
  const { extra, index, hashes, checkpoint: proven } = parseProof(small['session.tlog-proof']);
  if (extra)
    throw proofInvalidError('The proof of a bundle has no extra data: nothing vouches for it.');
  if (proven !== small.checkpoint) throw proofInvalidError('The proof is not of the checkpoint.');
  if (!verifyInclusion(hashes, index, leafHash(leafEntry(hash, index)), checkpoint))
    throw proofInvalidError(
      'The proof does not lead from the last event to the checkpoint: events were changed, added or cut off.',
    );
  requireSame(checkpoint, trusted.checkpoint, key);
  return { checkpoint, index, vkey: formatVkey(key), cosigned: cosigners(note, trusted.witnesses) };
}

/**
 * Verifies a bundle against the trusted values alone, in constant memory. Throws `proof_invalid`
 * with a sentence that names the first mismatch.
 */
export async function verifyBundle(
  bundle: AsyncIterable<BundleFile>,
  trusted: Known,
  onProgress: (events: number) => void,
): Promise<VerifiedBundle> {
  const files = bundle[Symbol.asyncIterator]();
  const read = async (name: SmallFileName) => smallText(await nextFile(files, name));
  const small = {
    manifest: await read('manifest'),
    vkey: await read('vkey'),
    checkpoint: await read('checkpoint'),
    'session.tlog-proof': await read('session.tlog-proof'),
  };
  const { session_id, events } = parseManifest(small['manifest']);
  const { add, seen } = createStreamChecker(sessionStream(session_id));
  for await (const event of jsonLines(await nextFile(files, 'events.jsonl'))) {
    add(event);
    onProgress(seen.events);
  }
  if (seen.events !== events)
    throw proofInvalidError(
      `The bundle has ${seen.events} events, and its manifest says ${events}.`,
    );
  if (!(await files.next()).done) throw proofInvalidError('The bundle has further files.');
  return { session_id, seen, ...verifyHead(small, seen.hash, trusted) };
}
