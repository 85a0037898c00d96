/** Reads JSON files named in options. */
import type { ValidateFunction } from 'ajv';
import { TurnlogError, type ErrorDetail } from '../../shared/lib/errors/turnlogError.ts';
import { problemsOf, type ProblemMessages } from '../../shared/lib/validation/validation.ts';
import { readOptionFile } from './regularFile.ts';

interface OptionFile {
  option: string;
  file: string;
}

/**
 * Problems in a file by JSON pointer. Each is the second half of a sentence that starts with the
 * pointer.
 */
export type Problems = Record<string, string>;

/** One error for all problems in a file. */
function invalidFileError(
  { option, file }: OptionFile,
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

/** Throws one `configuration_invalid` for all problems in a file. */
export function requireNoProblems(source: OptionFile, problems: Problems): void {
  if (Object.keys(problems).length > 0) throw invalidFileError(source, problems);
}

/** Reads a file. Throws `configuration_invalid` for one that can't be read or is not JSON. */
export async function readJsonFile(source: OptionFile): Promise<unknown> {
  try {
    return JSON.parse(await readOptionFile(source.file)) as unknown;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const problem =
      error instanceof SyntaxError
        ? `is not valid JSON (${message})`
        : `can't be read (${code ?? message})`;
    throw invalidFileError(source, { '': problem }, error);
  }
}

/** The problems that a schema finds; `messages` words them. */
export const schemaProblems = (
  validate: ValidateFunction,
  content: unknown,
  messages: ProblemMessages,
): Problems =>
  validate(content)
    ? {}
    : Object.fromEntries(
        problemsOf(validate.errors, {
          additionalProperties: () => 'is not a known field',
          ...messages,
        }).map(({ path, message }) => [path, message]),
      );
