import { DEFECT_EXIT_CODE } from '../process/processExit.ts';

/** The exit codes of commands, which docs/operations.md lists. */
export const EXIT = {
  done: 0,
  failed: 1,
  usage: 2,
  undecided: 3,
  defect: DEFECT_EXIT_CODE,
  interrupted: 130,
} as const;

/** The exit codes in every `--help`. */
export const EXIT_CODES_HELP = `
Exit codes:
  0    the command is done
  1    it failed, or what it looked at is not as it must be
  2    the command line, or a position in it, is not right: nothing was done
  3    of a replay: it runs, or nothing was compared
  70   it has a defect, and its stack trace was printed
  130  it was interrupted by Ctrl-C or SIGTERM`;
