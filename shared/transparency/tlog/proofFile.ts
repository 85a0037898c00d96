/** C2SP tlog-proof: the inclusion proof of an entry and its checkpoint, as text. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { decodeBase64 } from './base64.ts';
import { parseDecimal } from './checkpoint.ts';
import { HASH_BYTES } from './merkle.ts';

const HEADER = 'c2sp.org/tlog-proof@v1';
/** The maximum number of levels: tree sizes are below 2⁶³. */
const MAX_HASHES = 63;

interface ProofFile {
  /** Unauthenticated data of the application. */
  extra?: Buffer | undefined;
  /** 0-based index of the leaf. */
  index: number;
  /** In order from the leaf's sibling to the child of the root. */
  hashes: readonly Uint8Array[];
  /** The signed note. */
  checkpoint: string;
}

/** Formats a `.tlog-proof` file. */
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
 * Parses a `.tlog-proof` file without parsing its checkpoint. Throws `proof_invalid` when the text
 * is malformed or too large.
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
