import type { WitnessesHealth } from '../../shared/queries/health.ts';
import type { Witness } from '../../shared/ports/witness.ts';
import { parseCheckpoint } from '../../shared/tlog/checkpoint.ts';
import { verifyCosignature } from '../../shared/tlog/cosignature.ts';
import { parseNote, signatureLine } from '../../shared/tlog/note.ts';
import type { Signed } from './askWitness.ts';

/** What is known of a witness. */
export interface Known {
  witness: Witness;
  name: string;
  /** Of the checkpoint that it cosigned last. */
  size: number;
  /** Why it did not cosign when it was asked last; the rest of a sentence. */
  trouble: string | undefined;
}

/** A checkpoint, and the cosignatures that it has, by the names of witnesses. */
export interface Target extends Signed {
  lines: Map<string, string>;
}

/** A checkpoint as it stands in a note. Errors: `proof_invalid` where it is none. */
export function targetOf(note: string, all: readonly Known[]): Target {
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
export const textOf = ({ note, lines }: Target): string => note + [...lines.values()].join('');

interface Witnessed {
  wanted: number;
  all: readonly Known[];
  /** The checkpoint that is served. */
  served: Target | undefined;
}

/** What an operator is told. `shortForMs` says for how long too few have cosigned, where that is long. */
export function witnessesHealth(
  { wanted, all, served }: Witnessed,
  shortForMs: number | undefined,
): WitnessesHealth {
  const missing = all.filter(({ name }) => !served?.lines.has(name));
  const reached = all.length - missing.length;
  const why = missing.map(({ name, trouble = 'has not answered yet' }) => `${name} ${trouble}`);
  return {
    wanted,
    reached,
    missing: missing.map(({ name }) => name),
    short:
      shortForMs === undefined
        ? undefined
        : `Only ${reached} of ${wanted} wanted witnesses have cosigned the newest checkpoint, for ${Math.ceil(shortForMs / 1_000)} s: ${why.join('; ')}.`,
  };
}
