import { InvalidArgumentError } from 'commander';

/** Parses the reason that an operator gives for people. */
export function parseReason(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('A reason says something.');
  return text;
}
