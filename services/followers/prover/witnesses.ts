import type { WitnessesHealth } from '../../../shared/health/health.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { Witness } from '../../../shared/transparency/witness.ts';
import { parseCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { verifyCosignature } from '../../../shared/transparency/tlog/cosignature.ts';
import { parseNote, signatureLine } from '../../../shared/transparency/tlog/note.ts';
import type { SignedCheckpoint } from '../../../shared/transparency/kept/requestCosignature.ts';

/** The state of a witness. */
export interface WitnessState {
  witness: Witness;
  name: string;
  /** Of the checkpoint that it cosigned last. */
  size: number;
  /** Why its last response was no cosignature; the rest of a sentence. */
  trouble: string | undefined;
}

/** A checkpoint with its cosignatures, by the names of witnesses. */
export interface CosignedCheckpoint extends SignedCheckpoint {
  lines: Map<string, string>;
}

/** Parses a note. Throws `proof_invalid` where it holds no checkpoint. */
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

/** The state of all witnesses, as plain data. */
export interface WitnessesReport {
  wanted: number;
  /** Witnesses that cosigned the checkpoint that is served. */
  reached: number;
  /** The others, and why they did not. */
  missing: { name: string; trouble: string | undefined }[];
  /** True while the newest checkpoint has too few cosignatures. */
  isShort: boolean;
}

/** Reports on the witnesses while this checkpoint is served. */
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

/** Keeps the latest report on the witnesses. */
export function createWitnessesHealth({ shortMs } = LIMITS.witness as { shortMs: number }) {
  let latest: WitnessesReport | undefined;
  let shortSince: number | undefined;

  function sentence({ wanted, reached, missing }: WitnessesReport): string | undefined {
    const forMs = shortSince === undefined ? -1 : performance.now() - shortSince;
    if (forMs < shortMs) return undefined;
    const why = missing.map(({ name, trouble = 'has not answered yet' }) => `${name} ${trouble}`);
    return `Only ${reached} of ${wanted} wanted witnesses have cosigned the newest checkpoint, for ${Math.ceil(forMs / 1_000)} s: ${why.join('; ')}.`;
  }

  return {
    onReport(report: WitnessesReport): void {
      latest = report;
      shortSince = report.isShort ? (shortSince ?? performance.now()) : undefined;
    },
    /** Undefined before the first report. */
    health(): WitnessesHealth | undefined {
      if (!latest) return undefined;
      const { wanted, reached, missing } = latest;
      const reason = sentence(latest);
      const names = missing.map(({ name }) => name);
      return { wanted, reached, missing: names, ...(reason !== undefined && { reason }) };
    },
  };
}
