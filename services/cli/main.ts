import { onStopSignal } from '../process/stopSignals.ts';
import type { CommandProcess } from './context.ts';
import { interruptedError, reportCliFailure, resultLostError } from './failure.ts';
import { EXIT } from './exitCodes.ts';
import { isJson, runProgram } from './program.ts';

/** The time limit for closing the stores of an interrupted command, in case one hangs. */
const CLOSE_LIMIT_MS = 3_000;

const args = process.argv.slice(2);

/** True once some of the result was written. */
let isWritten = false;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A reader that has seen enough (`events tail | head`) is not an error. One that was gone before the
  // first line is: the line may be a key, which is shown only once.
  if (error.code !== 'EPIPE' || !isWritten)
    reportCliFailure(resultLostError(error), isJson(args), process);
  process.exit();
});
const stdout = {
  write: (text: string) => process.stdout.write(text, (error) => (isWritten ||= !error)),
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
