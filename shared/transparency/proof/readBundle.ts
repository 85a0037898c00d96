import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { canonicalJson } from '../../eventlog/canonicalJson.ts';
import {
  BUNDLE_FILES,
  isManifest,
  type BundleFile,
  type BundleFileName,
  type Manifest,
} from './bundleFormat.ts';

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
export async function nextFile(
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
export async function smallText({ name, bytes, content }: BundleFile): Promise<string> {
  const most = LIMITS.proof.fileBytes;
  if (bytes > most) throw proofInvalidError(`${name} has more than ${most} bytes.`);
  const chunks: Uint8Array[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return textOf(Buffer.concat(chunks), name);
}

/** Errors: `proof_invalid`. */
export function parseManifest(text: string): Manifest {
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
export async function* jsonLines({ name, content }: BundleFile): AsyncGenerator {
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
