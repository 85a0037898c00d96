import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/** What the operating system says of a file, as a sentence; undefined for any other error. */
export function asSentence(file: string, error: unknown): TurnlogError | undefined {
  if (typeof error !== 'object' || error === null || !('syscall' in error)) return undefined;
  const { message } = error as NodeJS.ErrnoException;
  return new TurnlogError('configuration_invalid', `${file}: ${message}`, { cause: error });
}
