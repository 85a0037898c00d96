import { onStopSignal } from '../process/stopSignals.ts';
import { interruptedError, reportCliFailure, resultLostError } from './failure.ts';
import { EXIT } from './exitCodes.ts';
import { isJson, runProgram } from './program.ts';

/** The time limit for closing the stores of an interrupted command, in case one hangs. */
const CLOSE_LIMIT_MS = 3_000;

const args = process.argv.slice(2);

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A closed pipe (`events tail | head`) is not an error.
  if (error.code !== 'EPIPE') reportCliFailure(resultLostError(error), isJson(args), process);
  process.exit();
});
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

await runProgram(args, process, stop.signal);
