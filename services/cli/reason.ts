import { InvalidArgumentError } from 'commander';

/** Reasons that are shown in lists. */
const LONGEST_REASON = 256;

/** Parses a reason of at most 256 characters. */
export function parseShortReason(text: string): string {
  if (text.trim() === '' || text.length > LONGEST_REASON)
    throw new InvalidArgumentError(`A reason has 1 to ${LONGEST_REASON} characters.`);
  return text;
}

/** Parses the reason that an operator gives for people. */
export function parseReason(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('A reason says something.');
  return text;
}
