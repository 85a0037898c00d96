/** The witness port: who is asked to cosign checkpoints of the transparency log. */
import type { NoteKey } from './tlog/noteKeys.ts';

/** A checkpoint, and what shows that it goes on from the one that the witness cosigned last. */
export interface CosignRequest {
  /** The size of that one, as far as known; 0 before the first. */
  oldSize: number;
  /** The consistency proof from there; empty from 0, and where the size is the same. */
  proof: readonly Uint8Array[];
  /** The checkpoint with the log's signature. */
  checkpoint: string;
}

/**
 * What a witness says: lines of a signed note, which are still to be verified; that the size of the
 * checkpoint it cosigned last is another one; or, in the rest of a sentence that begins with its
 * name, why there is neither.
 */
export type WitnessAnswer = { lines: string } | { size: number } | { trouble: string };

export interface Witness {
  /** Of its cosignatures; says the witness's name. */
  key: NoteKey;
  /** Never rejects, and takes LIMITS.witness.answerMs at the most. */
  addCheckpoint(request: CosignRequest, signal: AbortSignal): Promise<WitnessAnswer>;
}

/** How many cosignatures are wanted below a checkpoint, and who is asked for them. */
export interface WitnessPolicy {
  wanted: number;
  witnesses: readonly Witness[];
}
