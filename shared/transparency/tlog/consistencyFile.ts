/** An older tree and the proof that a newer one extends it, as the text of a file. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { decodeBase64 } from './base64.ts';
import { parseDecimal } from './checkpoint.ts';
import { HASH_BYTES } from './merkle.ts';
import type { TreeHead } from './verify.ts';

/** The maximum number of hashes: two for each level. */
const MAX_HASHES = 126;

export interface ConsistencyFile {
  older: TreeHead;
  /** As RFC 6962 §2.1.2 has them. */
  hashes: readonly Uint8Array[];
}

const base64 = (hash: Uint8Array): string => Buffer.from(hash).toString('base64');

/** Formats a consistency proof: size, root and hashes, each on a line. */
export const formatConsistency = ({ older, hashes }: ConsistencyFile): string =>
  [String(older.size), base64(older.root), ...hashes.map(base64), ''].join('\n');

/** Parses a consistency proof. Throws `proof_invalid` for any other text. */
export function parseConsistency(text: string): ConsistencyFile {
  const [size = '', ...lines] = text.split('\n');
  const leaves = parseDecimal(size);
  const end = lines.pop();
  const [root, ...hashes] = lines.map((line) => decodeBase64(line));
  const all = [root, ...hashes];
  if (leaves === undefined || end !== '' || all.some((hash) => hash?.length !== HASH_BYTES))
    throw proofInvalidError('A consistency proof is a size, a root and hashes, each on a line.');
  if (hashes.length > MAX_HASHES)
    throw proofInvalidError(`A consistency proof has more than ${MAX_HASHES} hashes.`);
  return { older: { size: leaves, root: root! }, hashes: hashes as Uint8Array[] };
}
