import type { Operator } from '../compose/operator.ts';

/** What every operator command is given. */
export interface CliContext {
  operator: Operator;
  /** A line of result, on standard output. */
  print: (line: string) => void;
  /** Progress for people, on standard error. */
  progress: { update: (text: () => string) => void; end: (text: string) => void };
  /** Aborts at Ctrl-C: the command stops where it can go on later. */
  signal: AbortSignal;
}

/** Runs one command over an opened data folder. */
export type WithOperator = (command: (context: CliContext) => Promise<void>) => Promise<void>;
