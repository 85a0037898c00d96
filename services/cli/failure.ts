import { CommanderError } from 'commander';
import { Rejection } from '../../shared/domain/rejection.ts';
import { isTurnlogError, TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { escapeControls } from '../../shared/lib/terminal.ts';
import { failureText } from '../process/processExit.ts';
import type { CommandProcess } from './context.ts';
import { EXIT } from './exitCodes.ts';
import { jsonLine } from './output.ts';

/** An error in the command line that its grammar does not detect. */
export const usageError = (message: string): CommanderError =>
  new CommanderError(EXIT.usage, 'usage', message);

/** A signal stopped the command before it had a result. */
export const interruptedError = (): CommanderError =>
  new CommanderError(EXIT.interrupted, 'interrupted', 'Interrupted.');

/** The result could not be written to standard output; the command may have done its work. */
export const resultLostError = ({ message }: Error): TurnlogError =>
  new TurnlogError(
    'configuration_invalid',
    `The result could not be written to standard output: ${message}. The command may have done its work: check before you repeat it.`,
  );

/** A text without the user and password of any URL in it. */
export const maskCredentials = (text: string): string =>
  text.replace(/([a-z][\w+.-]*:\/\/)\S*@/gi, '$1…@');

/** The error for an existing file in the place of a new one. */
export const fileExistsError = (file: string): TurnlogError =>
  new TurnlogError(
    'configuration_invalid',
    `${file} exists already and was left as it is: name another file, or remove it first.`,
  );

/** The error for a file that could not be read or written, for the operator to resolve. */
export const fileError = (file: string, error: unknown): TurnlogError =>
  new TurnlogError('configuration_invalid', `${file}: ${(error as Error).message}`, {
    cause: error,
  });

const isDefect = (error: unknown): boolean =>
  !(error instanceof CommanderError || isTurnlogError(error) || error instanceof Rejection);

/** The original error, unless closing the resources met a defect. */
function decisiveError(error: unknown): unknown {
  if (!(error instanceof SuppressedError)) return error;
  const closing = decisiveError(error.error);
  return isDefect(closing) ? closing : decisiveError(error.suppressed);
}

const codeOf = (error: unknown): string => {
  if (error instanceof CommanderError)
    return error.code === 'interrupted' ? 'interrupted' : 'usage';
  return isTurnlogError(error) || error instanceof Rejection ? error.code : 'internal_error';
};

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError)
    return error.code === 'interrupted' ? EXIT.interrupted : EXIT.usage;
  if (isTurnlogError(error, 'position_invalid')) return EXIT.usage;
  return isTurnlogError(error) || error instanceof Rejection ? EXIT.failed : EXIT.defect;
}

/** The message of the grammar, without its `error: ` prefix. */
function messageOf(error: unknown): string {
  if (!(error instanceof CommanderError)) return failureText(error);
  if (error.code === 'commander.help') return 'Name a command: --help lists them.';
  const message = error.message.replace(/^error: /, '');
  const isUnknown = error.code === 'commander.unknownCommand';
  // The message may end with a suggestion in a second line.
  return isUnknown ? message.replace(/^.*/, '$&: --help lists the commands') : message;
}

/**
 * Writes the reason of a failure to standard error, as one sentence or with `--json` as one JSON
 * object, and sets the exit code. Passwords in URLs are masked.
 */
export function reportCliFailure(
  error: unknown,
  json: boolean,
  target: Pick<CommandProcess, 'stderr' | 'exitCode'>,
): void {
  const decisive = decisiveError(error);
  const message = maskCredentials(messageOf(error));
  const text = json
    ? jsonLine({ error: { code: codeOf(decisive), message } })
    : message.split('\n').map(escapeControls).join('\n');
  target.stderr.write(`${text}\n`);
  target.exitCode ||= exitCodeOf(decisive);
}
