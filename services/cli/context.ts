import type { Environment } from '../../shared/lib/config/config.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { Operator } from '../compose/operator/operator.ts';
import type { EXIT } from './exitCodes.ts';
import type { Output } from './output.ts';

/** The parts of a process that commands use; `process` is one. */
export interface CommandProcess {
  env: Environment;
  stdout: { write: (text: string) => unknown };
  stderr: { write: (text: string) => unknown; isTTY?: boolean };
  /** Undefined until a command fails or is interrupted. */
  exitCode?: number | string | null | undefined;
}

/** The environment of a command that opens its stores itself. */
export interface TerminalContext {
  env: Environment;
  /** The result, on standard output. */
  output: Output;
  /** A notice before the result, on standard error. */
  notice: Output['show'];
  /** Progress for people, on standard error; nothing with `--json`. */
  progress: { update: (text: () => string) => void; end: (text: string) => void };
  /** Aborts at Ctrl-C: the command stops where it can continue later. */
  signal: AbortSignal;
  logger: (level: string) => Logger;
  exitWith: (code: (typeof EXIT)[keyof typeof EXIT]) => void;
}

/** The context of every operator command. */
export interface CliContext extends TerminalContext {
  operator: Operator;
}

/**
 * The log that a command needs: a non-empty one (`existing`), one that may be empty (`may_be_empty`),
 * or one that is created if missing (`may_be_new`).
 */
export type LogRequirement = 'existing' | 'may_be_empty' | 'may_be_new';

/** Runs one command over the configured stores. */
export type WithOperator = (
  command: (context: CliContext) => Promise<void>,
  requirement?: LogRequirement,
) => Promise<void>;

/** Runs one command that opens its stores itself. */
export type WithTerminal = (command: (context: TerminalContext) => Promise<void>) => Promise<void>;
