import { proofInvalidError } from '../lib/errors/turnlogError.ts';
import { verifyCosignature } from './tlog/cosignature.ts';
import type { Note } from './tlog/note.ts';
import { parseVkey, publicKeyOf, type NoteKey } from './tlog/noteKeys.ts';

/** The witnesses that a verifier trusts, and how many of them it requires. */
export interface TrustedWitnesses {
  /** Vkeys. */
  witnesses: readonly string[];
  /** At least this many must have cosigned; 1 by default, or 0 without witnesses. */
  required?: number | undefined;
}

/** The names of the trusted witnesses. */
export interface Cosigners {
  cosigned: string[];
  not_cosigned: string[];
}

/**
 * Each witness once: a key that is given twice, or under two names, must not count as two
 * witnesses. Throws `proof_invalid` for a text that is not a vkey.
 */
export const distinctWitnesses = (vkeys: readonly string[]): NoteKey[] => [
  ...new Map(vkeys.map((vkey) => parseVkey(vkey)).map((key) => [publicKeyOf(key), key])).values(),
];

/**
 * The trusted witnesses that have cosigned a checkpoint, and those that have not. Throws
 * `proof_invalid` when fewer than required have.
 */
export function requireCosigners(
  { text, signatures }: Note,
  { witnesses, required = Math.min(1, witnesses.length) }: TrustedWitnesses,
): Cosigners {
  const [cosigned, not_cosigned]: [string[], string[]] = [[], []];
  for (const key of distinctWitnesses(witnesses)) {
    const has = signatures.some((line) => verifyCosignature(text, key, line) !== undefined);
    (has ? cosigned : not_cosigned).push(key.name);
  }
  if (cosigned.length >= required) return { cosigned, not_cosigned };
  throw proofInvalidError(
    cosigned.length === 0
      ? 'None of the witnesses that were given has cosigned the checkpoint.'
      : `${required} of the witnesses that were given must have cosigned the checkpoint, and ${cosigned.length} have: ${cosigned.join(', ')}. Missing: ${not_cosigned.join(', ')}.`,
  );
}
