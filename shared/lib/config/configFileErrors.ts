import { TurnlogError, type ErrorDetail } from '../errors/turnlogError.ts';

/** What is wrong in a file, by JSON pointer: the rest of a sentence that begins with the place. */
export type Problems = Record<string, string>;

/** One error for all the problems of a file that an option names. */
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

/** What is wrong with a file whose text could not be had, or is no JSON. */
export const unreadable = (error: unknown): Problems => ({
  '':
    error instanceof SyntaxError
      ? `is not valid JSON (${error.message})`
      : `can't be read (${(error as NodeJS.ErrnoException).code})`,
});
