import { TurnlogError, type ErrorDetail } from '../errors/turnlogError.ts';

/**
 * Problems in a file by JSON pointer. Each is the second half of a sentence that starts with the
 * pointer.
 */
export type Problems = Record<string, string>;

/** Creates one error for all problems in a file that an option names. */
export function badFile(
  { option, file }: { option: string; file: string },
  problems: Problems,
  cause?: unknown,
): TurnlogError {
  const details: Record<string, ErrorDetail> = {};
  for (const [path, message] of Object.entries(problems))
    details[`${file}#${path}`] = { message, path };
  const lines = Object.entries(problems).map(
    ([path, message]) => `${path || 'the file'} ${message}`,
  );
  return new TurnlogError('configuration_invalid', `${option} ${file}: ${lines.join('; ')}.`, {
    details,
    cause,
  });
}

/** The problem of a file that can't be read or is not JSON. */
export const unreadable = (error: unknown): Problems => ({
  '':
    error instanceof SyntaxError
      ? `is not valid JSON (${error.message})`
      : `can't be read (${(error as NodeJS.ErrnoException).code ?? (error as Error).message})`,
});
