/** The witness port: requests cosignatures for checkpoints of the transparency log. */
import type { NoteKey } from './tlog/noteKeys.ts';

/** A checkpoint, and the proof that it extends the checkpoint that the witness cosigned last. */
export interface CosignRequest {
  /** The size of the last cosigned checkpoint, as far as known; 0 before the first. */
  oldSize: number;
  /** The consistency proof from `oldSize`; empty when `oldSize` is 0 or the current size. */
  proof: readonly Uint8Array[];
  /** The checkpoint with the signature of the log. */
  checkpoint: string;
}

/**
 * The result of a request: `lines` are unverified lines of a signed note; `size` is the size of the
 * checkpoint that the witness cosigned last, when `oldSize` was wrong; `trouble` completes a
 * sentence that begins with the name of the witness; `contradicts` is true when the checkpoint does
 * not extend the one that it cosigned last.
 */
export type WitnessAnswer =
  { lines: string } | { size: number } | { trouble: string; contradicts?: true };

export interface Witness {
  /** The key that verifies its cosignatures. Contains the name of the witness. */
  key: NoteKey;
  /** Never rejects, and settles within LIMITS.witness.answerMs. */
  addCheckpoint(request: CosignRequest, signal: AbortSignal): Promise<WitnessAnswer>;
}

/** The number of cosignatures that a checkpoint needs, and the witnesses that can provide them. */
export interface WitnessPolicy {
  wanted: number;
  witnesses: readonly Witness[];
}
