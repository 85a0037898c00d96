/** The files of a bundle (docs/proof.md of the service), read without holding the whole archive. */
import { fromBase64Hash, fromUtf8, readDecimal, type Bytes } from './bytes.ts';
import { fromCanonical } from './canonical.ts';
import { unreadable } from './mismatch.ts';

const BLOCK = 512;
const MAX_FILE_BYTES = 65_536;
const MAX_LINE_BYTES = 4_194_304;
const SLICE_BYTES = 1_048_576;
const LINE_FEED = 0x0a;
const NIL = '000000 \0';
const SMALL = ['manifest', 'vkey', 'checkpoint', 'session.tlog-proof', 'consistency'] as const;
const EVENTS = 'events.jsonl';

/** The only header that a file may have. */
function headerWith(name: string, sizeAndTime: string): string {
  const withSum = (sum: string): string =>
    `${name.padEnd(100, '\0')}000644 \0${NIL}${NIL}${sizeAndTime}${sum}${'0'.padEnd(101, '\0')}ustar\0${'00'.padEnd(66, '\0')}${NIL}${NIL}`.padEnd(
      BLOCK,
      '\0',
    );
  const sum = [...withSum(' '.repeat(8))].reduce((all, char) => all + char.charCodeAt(0), 0);
  return withSum(`${sum.toString(8).padStart(6, '0')} \0`);
}

const bytesOf = async (file: Blob, from: number, to: number): Promise<Bytes> =>
  new Uint8Array(await file.slice(from, to).arrayBuffer());

const latin1 = (bytes: Bytes): string =>
  Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');

/** Where the content of the next file is. Throws Mismatch unless it is the expected file. */
async function findFile(file: Blob, at: number, name: string) {
  const header = latin1(await bytesOf(file, at, at + BLOCK));
  const numbers = header.slice(124, 148);
  const isFile = /^([0-7]{11} ){2}$/.test(numbers) && header === headerWith(name, numbers);
  const size = parseInt(numbers, 8);
  const from = at + BLOCK;
  const end = from + Math.ceil(size / BLOCK) * BLOCK;
  if (!isFile || end > file.size)
    throw unreadable(`This is no bundle: it has no “${name}” where it is due.`);
  if ((await bytesOf(file, from + size, end)).some((byte) => byte !== 0))
    throw unreadable(`The bundle has other content after “${name}”.`);
  return { from, to: from + size, end };
}

function text(bytes: Bytes, what: string): string {
  try {
    return fromUtf8(bytes);
  } catch {
    throw unreadable(`${what} is not UTF-8.`);
  }
}

/** An event of a bundle with its proof. */
export interface BundleLine {
  event: unknown;
  leaf: number;
  hashes: Bytes[];
}

function readJson(bytes: Bytes, what: string): Readonly<Record<string, unknown>> {
  const json = text(bytes, what);
  try {
    const value = fromCanonical(json);
    if (typeof value === 'object' && value !== null) return { ...value };
  } catch {
    // The error is the same as for a value that is no object.
  }
  throw unreadable(`${what} is not canonical JSON.`);
}

function readLine(bytes: Bytes, number: number): BundleLine {
  const what = `Line ${number} of ${EVENTS}`;
  const line = readJson(bytes, what);
  const { event, hashes, leaf } = line;
  const isLine =
    Object.keys(line).join() === 'event,hashes,leaf' &&
    Array.isArray(hashes) &&
    Number.isSafeInteger(leaf) &&
    (leaf as number) >= 0;
  const proof = isLine && (hashes as unknown[]).map((hash) => fromBase64Hash(String(hash)));
  if (!proof || proof.includes(undefined)) throw unreadable(`${what} is no event with its proof.`);
  return { event, leaf: leaf as number, hashes: proof as Bytes[] };
}

async function* readLines(file: Blob, from: number, to: number): AsyncGenerator<BundleLine> {
  let rest: Bytes = new Uint8Array();
  let number = 0;
  for (let at = from; at < to; at += SLICE_BYTES) {
    const slice = await bytesOf(file, at, Math.min(to, at + SLICE_BYTES));
    const bytes: Bytes = new Uint8Array(rest.length + slice.length);
    bytes.set(rest);
    bytes.set(slice, rest.length);
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      number += 1;
      if (end + 1 - start > MAX_LINE_BYTES)
        throw unreadable(`Line ${number} of ${EVENTS} is longer than 4 MiB.`);
      yield readLine(bytes.subarray(start, end), number);
      start = end + 1;
    }
    rest = bytes.slice(start);
    if (rest.length >= MAX_LINE_BYTES)
      throw unreadable(`Line ${number + 1} of ${EVENTS} is longer than 4 MiB.`);
  }
  if (rest.length > 0) throw unreadable(`Line ${number + 1} of ${EVENTS} has no end.`);
}

/** A bundle whose small files are read. */
export interface Bundle {
  session_id: string;
  events: number;
  vkey: string;
  checkpoint: string;
  proof: string;
  consistency: string;
  lines: AsyncGenerator<BundleLine>;
}

/** Opens a bundle. Throws Mismatch for any other file. */
export async function openBundle(file: Blob): Promise<Bundle> {
  const small = new Map<string, Bytes>();
  let at = 0;
  for (const name of SMALL) {
    const { from, to, end } = await findFile(file, at, name);
    if (to - from > MAX_FILE_BYTES) throw unreadable(`“${name}” of the bundle is too large.`);
    small.set(name, await bytesOf(file, from, to));
    at = end;
  }
  const last = await findFile(file, at, EVENTS);
  const tail = await bytesOf(file, last.end, last.end + 2 * BLOCK + 1);
  if (tail.length !== 2 * BLOCK || tail.some((byte) => byte !== 0))
    throw unreadable('The bundle does not end where it should.');
  const written = small.get('manifest')!;
  if (written.at(-1) !== LINE_FEED) throw unreadable('“manifest” has no line feed at its end.');
  const manifest = readJson(written.subarray(0, -1), '“manifest”');
  const { session_id, events, turnlog_bundle: version } = manifest;
  const isKnown = Object.keys(manifest).join() === 'events,session_id,turnlog_bundle';
  if (!isKnown || version !== 2 || typeof session_id !== 'string')
    throw unreadable('The bundle is of another version. Ask for a new export of the session.');
  if (!Number.isSafeInteger(events) || (events as number) < 1)
    throw unreadable('The bundle has no events.');
  const textOf = (name: (typeof SMALL)[number]): string => text(small.get(name)!, `“${name}”`);
  return {
    session_id,
    events: events as number,
    vkey: textOf('vkey').trimEnd(),
    checkpoint: textOf('checkpoint'),
    proof: textOf('session.tlog-proof'),
    consistency: textOf('consistency'),
    lines: readLines(file, last.from, last.to),
  };
}

const MAX_PROOF_HASHES = 63;

/** Reads a C2SP tlog-proof without extra data. Throws Mismatch. */
export function readProofFile(proof: string): {
  index: number;
  hashes: Bytes[];
  checkpoint: string;
} {
  const end = proof.indexOf('\n\n');
  const [header, place = '', ...lines] = proof.slice(0, Math.max(end, 0)).split('\n');
  const index = readDecimal(/^index (.*)$/.exec(place)?.[1] ?? '');
  const hashes = lines.map(fromBase64Hash);
  const isProof = header === 'c2sp.org/tlog-proof@v1' && hashes.length <= MAX_PROOF_HASHES;
  if (!isProof || index === undefined || hashes.includes(undefined))
    throw unreadable('The inclusion proof is no C2SP tlog-proof.');
  return { index, hashes: hashes as Bytes[], checkpoint: proof.slice(end + 2) };
}

/** Reads the file `consistency`: an older tree, and the proof that the checkpoint extends it. */
export function readConsistency(consistency: string) {
  const [first = '', ...lines] = consistency.split('\n');
  const size = readDecimal(first);
  const isEnded = lines.pop() === '';
  const [root, ...hashes] = lines.map(fromBase64Hash);
  if (size === undefined || !isEnded || !root || hashes.includes(undefined) || hashes.length > 126)
    throw unreadable('The consistency proof of the bundle can’t be read.');
  return { older: { size, root }, hashes: hashes as Bytes[] };
}
