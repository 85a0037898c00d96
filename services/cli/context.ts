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
  /** What has to be known before the result is there, on standard error. */
  notice: Output['show'];
  /** Progress for people, on standard error; none with `--json`. */
  progress: { update: (text: () => string) => void; end: (text: string) => void };
  /** Aborts at Ctrl-C: the command stops at a point from which it can continue later. */
  signal: AbortSignal;
  logger: (level: string) => Logger;
  exitWith: (code: (typeof EXIT)[keyof typeof EXIT]) => void;
}

/** What every operator command is given. */
export interface CliContext extends TerminalContext {
  operator: Operator;
}

/**
 * On what a command works: a log that is there (`existing`), one that may be empty (`empty_too`), or
 * one that it makes where there is none (`new_too`).
 */
export type LogRequirement = 'existing' | 'empty_too' | 'new_too';

/** Runs one command over the configured stores. */
export type WithOperator = (
  command: (context: CliContext) => Promise<void>,
  needed?: LogRequirement,
) => Promise<void>;

/** Runs one command that opens what it works on itself. */
export type WithTerminal = (command: (context: TerminalContext) => Promise<void>) => Promise<void>;
