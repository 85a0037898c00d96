/** C2SP tlog-checkpoint: the text of a note that describes a tree. */
import { proofInvalidError } from '../../lib/errors/turnlogError.ts';
import { decodeBase64 } from './base64.ts';
import { HASH_BYTES } from './merkle.ts';
import type { TreeHead } from './verify.ts';

/** The origin, size and root of a tree. */
export interface CheckpointText extends TreeHead {
  origin: string;
  root: Buffer;
}

const DECIMAL = /^(0|[1-9][0-9]*)$/;

/** Parses a decimal number without leading zeros; undefined for any other text. */
export function parseDecimal(text: string): number | undefined {
  const value = DECIMAL.test(text) ? Number(text) : NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}

/** The text of a checkpoint, ready to be signed. */
export const formatCheckpoint = ({ origin, size, root }: TreeHead & { origin: string }): string =>
  `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;

/**
 * Parses the text of a checkpoint and ignores extension lines. Throws `proof_invalid` for any other
 * text.
 */
export function parseCheckpoint(text: string): CheckpointText {
  const lines = text.split('\n');
  const [origin = '', size = '', root = ''] = lines;
  const leaves = parseDecimal(size);
  const hash = decodeBase64(root);
  if (lines.pop() !== '' || lines.length < 3 || lines.includes(''))
    throw proofInvalidError('A checkpoint is three lines or more, none of them empty.');
  if (leaves === undefined || hash?.length !== HASH_BYTES)
    throw proofInvalidError('A checkpoint has no size or no root on its second and third line.');
  return { origin, size: leaves, root: hash };
}

/** True for a note over the empty tree: a tree is begun with one, before any leaf is signed. */
export const isOfEmptyTree = (note: string): boolean => note.split('\n', 2)[1] === '0';
