import type { Witness } from '../../../shared/transparency/witness.ts';
import { parseCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { verifyCosignature } from '../../../shared/transparency/tlog/cosignature.ts';
import { parseNote, signatureLine } from '../../../shared/transparency/tlog/note.ts';
import type { SignedCheckpoint } from './askWitness.ts';

/** What is known of a witness. */
export interface WitnessState {
  witness: Witness;
  name: string;
  /** Of the checkpoint that it cosigned last. */
  size: number;
  /** Why it did not cosign when it was asked last; the rest of a sentence. */
  trouble: string | undefined;
}

/** A checkpoint, and the cosignatures that it has, by the names of witnesses. */
export interface CosignedCheckpoint extends SignedCheckpoint {
  lines: Map<string, string>;
}

/** A checkpoint as it stands in a note. Errors: `proof_invalid` where it is none. */
export function parseCosignedCheckpoint(
  note: string,
  all: readonly WitnessState[],
): CosignedCheckpoint {
  const { text, signatures } = parseNote(note);
  const lines = new Map<string, string>();
  const others: string[] = [];
  for (const signature of signatures) {
    const by = all.find(
      ({ witness }) => verifyCosignature(text, witness.key, signature) !== undefined,
    );
    if (by) lines.set(by.name, signatureLine(signature));
    else others.push(signatureLine(signature));
  }
  return { note: `${text}\n${others.join('')}`, text, size: parseCheckpoint(text).size, lines };
}

/** The note with its cosignatures. */
export const noteWithCosignatures = ({ note, lines }: CosignedCheckpoint): string =>
  note + [...lines.values()].join('');

/** How witnesses are, as plain data. */
export interface WitnessesReport {
  wanted: number;
  /** Witnesses that cosigned the checkpoint that is served. */
  reached: number;
  /** The others, and why they did not. */
  missing: { name: string; trouble: string | undefined }[];
  /** True while the newest checkpoint has too few cosignatures. */
  isShort: boolean;
}

/** How witnesses are, while this checkpoint is served. */
export function witnessesReport(
  { wanted, isShort }: Pick<WitnessesReport, 'wanted' | 'isShort'>,
  all: readonly WitnessState[],
  served: CosignedCheckpoint | undefined,
): WitnessesReport {
  const missing = all
    .filter(({ name }) => !served?.lines.has(name))
    .map(({ name, trouble }) => ({ name, trouble }));
  return { wanted, isShort, reached: all.length - missing.length, missing };
}
