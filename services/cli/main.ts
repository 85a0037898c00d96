import { KIB } from '../../shared/lib/units.ts';
import { onStopSignal } from '../process/stopSignals.ts';
import type { CommandProcess } from './context.ts';
import { interruptedError, reportCliFailure, resultLostError } from './failure.ts';
import { EXIT } from './exitCodes.ts';
import { isJson, runProgram } from './program.ts';

/** The time limit for closing the stores of an interrupted command, in case one hangs. */
const CLOSE_LIMIT_MS = 3_000;

const args = process.argv.slice(2);

/** A pipe takes a piece of this size whole or not at all (PIPE_BUF of Linux). */
const PIECE_BYTES = 4 * KIB;

/** True once the beginning of the result was written. */
let isWritten = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader that closes the pipe after the beginning (`events tail | head`) is not an error. A pipe
  // that is closed before is one: the result may be a key, which is shown only once.
  if (error.code !== 'EPIPE' || !isWritten)
    reportCliFailure(resultLostError(error), isJson(args), process);
  process.exit();
});
const stdout = {
  write(text: string) {
    const bytes = Buffer.from(text);
    for (const piece of [bytes.subarray(0, PIECE_BYTES), bytes.subarray(PIECE_BYTES)])
      if (piece.length > 0) process.stdout.write(piece, (error) => (isWritten ||= !error));
  },
};
// Failing to write progress affects neither the work of a command nor its exit code.
process.stderr.on('error', () => undefined);

const stop = new AbortController();
function interrupt(): void {
  stop.abort(interruptedError());
  setTimeout(() => {
    if (process.exitCode !== EXIT.interrupted)
      reportCliFailure(stop.signal.reason, isJson(args), process);
    process.exit();
  }, CLOSE_LIMIT_MS).unref();
}
onStopSignal(interrupt);

const target: CommandProcess = {
  env: process.env,
  stdout,
  stderr: process.stderr,
  get exitCode() {
    return process.exitCode;
  },
  set exitCode(code) {
    process.exitCode = code;
  },
};
await runProgram(args, target, stop.signal);
