/** C2SP tlog-proof: an entry's proof, with the checkpoint that it leads to, as text. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { decodeBase64 } from './base64.ts';
import { parseDecimal } from './checkpoint.ts';
import { HASH_BYTES } from './merkle.ts';

const HEADER = 'c2sp.org/tlog-proof@v1';
/** A tree has no more levels: sizes are below 2⁶³. */
const MAX_HASHES = 63;

export interface ProofFile {
  /** What the application adds; nothing vouches for it. */
  extra?: Buffer | undefined;
  /** Of the leaf, from 0. */
  index: number;
  /** From the leaf's sibling up. */
  hashes: readonly Uint8Array[];
  /** The signed note. */
  checkpoint: string;
}

/** The text of a `.tlog-proof`. */
export function formatProof({ extra, index, hashes, checkpoint }: ProofFile): string {
  const lines = [
    HEADER,
    ...(extra ? [`extra ${extra.toString('base64')}`] : []),
    `index ${index}`,
    ...hashes.map((hash) => Buffer.from(hash).toString('base64')),
  ];
  return `${lines.join('\n')}\n\n${checkpoint}`;
}

function parseHash(line: string): Buffer {
  const hash = decodeBase64(line);
  if (hash?.length !== HASH_BYTES) throw proofInvalidError('A proof has a line that is no hash.');
  return hash;
}

/**
 * What a `.tlog-proof` says; its checkpoint is not looked at. Errors: `proof_invalid` for a text that
 * is none, or too large a one.
 */
export function parseProof(text: string): ProofFile {
  if (Buffer.byteLength(text) > LIMITS.tlog.proofBytes)
    throw proofInvalidError(`A proof has more than ${LIMITS.tlog.proofBytes} bytes.`);
  const end = text.indexOf('\n\n');
  const lines = text.slice(0, Math.max(end, 0)).split('\n');
  if (lines.shift() !== HEADER) throw proofInvalidError(`A proof begins with the line ${HEADER}.`);
  const extra = lines[0]?.startsWith('extra ')
    ? decodeBase64((lines.shift() ?? '').slice('extra '.length))
    : null;
  if (extra === undefined) throw proofInvalidError('The extra data of a proof is not base64.');
  const index = parseDecimal(/^index (.*)$/.exec(lines.shift() ?? '')?.[1] ?? '');
  if (index === undefined) throw proofInvalidError('A proof has no index.');
  if (lines.length > MAX_HASHES)
    throw proofInvalidError(`A proof has more than ${MAX_HASHES} hashes.`);
  const hashes = lines.map(parseHash);
  return { ...(extra && { extra }), index, hashes, checkpoint: text.slice(end + 2) };
}
