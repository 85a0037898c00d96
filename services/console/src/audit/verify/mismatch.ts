/** Where a verification ended, for the person who reads its result. */
export interface MismatchDetails {
  /** The meaning of the mismatch. */
  meaning: string;
  /** The expected and the actual hash, root or number. */
  expected?: string | undefined;
  actual?: string | undefined;
  /** The first event that does not match. */
  event?: { revision: number; type: string; time: string };
}

/** Something does not match; the message says what. */
export class Mismatch extends Error {
  readonly details: MismatchDetails;

  constructor(message: string, details: MismatchDetails) {
    super(message);
    this.details = details;
  }
}

/** A text that can't be read. */
export const unreadable = (message: string): Mismatch =>
  new Mismatch(message, { meaning: 'The text was changed, or is none of this kind.' });
