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

/** Errors: `proof_invalid` for bytes that are not UTF-8. */
function textOf(bytes: Uint8Array, what: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    throw proofInvalidError(`${what} is not UTF-8.`, error);
  }
}

/** Errors: `proof_invalid`. */
function parsed(text: string, what: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    // Two readers of another text might not see the same: a name may stand in it twice.
    if (canonicalJson(value) === text) return value;
  } catch {
    // The sentence is the same.
  }
  throw proofInvalidError(`${what} is not canonical JSON.`);
}

/**
 * The next file of a bundle, which must be the one that is due. Errors: `proof_invalid`, those of
 * reading.
 */
async function nextFile(
  files: AsyncIterator<BundleFile>,
  due: BundleFileName,
): Promise<BundleFile> {
  const next = await files.next();
  if (next.done) throw proofInvalidError(`The bundle has no ${due}.`);
  const { name, isFile } = next.value;
  if (name !== due || !isFile)
    throw proofInvalidError(
      `A bundle has the files ${BUNDLE_FILES.join(', ')} in this order: where ${due} is due stands ${isFile ? '' : 'what is no file of a bundle, '}${JSON.stringify(name.slice(0, 100))}.`,
    );
  return next.value;
}

/** The whole text of a file that is small. Errors: `proof_invalid`, those of reading. */
async function smallText({ name, bytes, content }: BundleFile): Promise<string> {
  const most = LIMITS.proof.fileBytes;
  if (bytes > most) throw proofInvalidError(`${name} has more than ${most} bytes.`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return textOf(Buffer.concat(chunks), name);
}

/** Errors: `proof_invalid`. */
function parseManifest(text: string): Manifest {
  if (!text.endsWith('\n')) throw proofInvalidError('manifest has no line feed at its end.');
  const manifest = parsed(text.slice(0, -1), 'manifest');
  if (!isManifest()(manifest))
    throw proofInvalidError('manifest is not of a bundle that is known.');
  return manifest;
}

/** `bytes` are those of a line with its line feed. Errors: `proof_invalid`. */
function requireWithin(bytes: number, what: string): void {
  const most = LIMITS.proof.lineBytes;
  if (bytes > most) throw proofInvalidError(`${what} has more than ${most} bytes.`);
}

/**
 * The values of JSON lines, each in canonical form. No more than one line is held. Errors:
 * `proof_invalid`, those of reading.
 */
async function* jsonLines({ name, content }: BundleFile): AsyncGenerator {
  let rest: Uint8Array[] = [];
  let held = 0;
  let line = 0;
  for await (const chunk of content) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      line += 1;
      const what = `Line ${line} of ${name}`;
      requireWithin(held + end + 1 - from, what);
      yield parsed(textOf(Buffer.concat([...rest, chunk.subarray(from, end)]), what), what);
      [rest, held, from] = [[], 0, end + 1];
    }
    held += chunk.length - from;
    requireWithin(held + 1, `Line ${line + 1} of ${name}`);
    // A copy: what is read next may take the chunk's place.
    if (from < chunk.length) rest.push(Buffer.from(chunk.subarray(from)));
  }
  if (held > 0) throw proofInvalidError(`Line ${line + 1} of ${name} has no end.`);
}

/** What somebody who verifies a bundle knows from elsewhere. */
export interface Known {
  /** Of the log; the bundle's own where it is absent. */
  vkey?: string | undefined;
  /** A checkpoint that the log published, and of which the bundle must be. */
  checkpoint?: string | undefined;
  /** Vkeys of witnesses, of which one must have cosigned where any are given. */
  witnesses: readonly string[];
}

/** What a bundle that fits shows. */
export interface VerifiedBundle {
  session_id: string;
  seen: SeenStream;
  checkpoint: CheckpointText;
  /** Of the last event's leaf. */
  index: number;
  vkey: string;
  /** The names of witnesses that are known and have cosigned. */
  cosigned: string[];
}

type Small = Record<SmallFileName, string>;

function requireSame(checkpoint: CheckpointText, given: string | undefined, key: NoteKey): void {
  if (given === undefined) return;
  const other = openCheckpoint(given, [key]).checkpoint;
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
  const found = witnesses
    .map(parseVkey)
    .flatMap((key) =>
      signatures.some((line) => verifyCosignature(text, key, line) !== undefined) ? [key.name] : [],
    );
  if (witnesses.length > 0 && found.length === 0)
    throw proofInvalidError('None of the witnesses that were given has cosigned the checkpoint.');
  return found;
}

/** What the files before the events show once the hash of the last event is known. */
function verifyHead(small: Small, hash: string, known: Known) {
  const key = parseVkey((known.vkey ?? small.vkey).trimEnd());
  const { note, checkpoint } = openCheckpoint(small.checkpoint, [key]);
  const { extra, index, hashes, checkpoint: proven } = parseProof(small['session.tlog-proof']);
  if (extra)
    throw proofInvalidError('The proof of a bundle has no extra data: nothing vouches for it.');
  if (proven !== small.checkpoint) throw proofInvalidError('The proof is not of the checkpoint.');
  if (!verifyInclusion(hashes, index, leafHash(leafEntry(hash, index)), checkpoint))
    throw proofInvalidError(
      'The proof does not lead from the last event to the checkpoint: events were changed, added or cut off.',
    );
  requireSame(checkpoint, known.checkpoint, key);
  return { checkpoint, index, vkey: formatVkey(key), cosigned: cosigners(note, known.witnesses) };
}

/**
 * Verifies a bundle with nothing but itself and what is known from elsewhere. Memory does not grow
 * with it. Errors: `proof_invalid` in a sentence that names the first misfit, those of reading.
 */
export async function verifyBundle(
  bundle: AsyncIterable<BundleFile>,
  known: Known,
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
  return { session_id, seen, ...verifyHead(small, seen.hash, known) };
}
