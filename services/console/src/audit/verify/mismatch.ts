/** Where a verification ended, for the person who reads its result. */
export interface MismatchDetails {
  /** The first event that does not match. */
  event?: { revision: number; type: string; time: string } | undefined;
  /** What the hash, the root or the text would have to be, and what it is. */
  expected?: string | undefined;
  actual?: string | undefined;
  /** What that means. */
  meaning: string;
}

/** Something does not match; the message says what. */
export class Mismatch extends Error {
  readonly details: MismatchDetails;

  constructor(message: string, details: MismatchDetails) {
    super(message);
    this.details = details;
  }
}

const DAMAGED_FILE = 'The file was changed, damaged, or is no file of this kind. Ask for it again.';

/** A file or a pasted text that can't be read. */
export const unreadable = (message: string): Mismatch =>
  new Mismatch(message, { meaning: DAMAGED_FILE });
