import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';

/** Converts an error of the operating system. Returns undefined for other errors. */
export function toFileError(file: string, error: unknown): TurnlogError | undefined {
  if (typeof error !== 'object' || error === null || !('syscall' in error)) return undefined;
  const { message } = error as NodeJS.ErrnoException;
  return new TurnlogError('configuration_invalid', `${file}: ${message}`, { cause: error });
}
