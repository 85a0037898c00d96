import { interruptedError, reportCliFailure, resultLostError } from './failure.ts';
import { EXIT } from './exitCodes.ts';
import { isJson, runProgram } from './program.ts';

/** The time that an interrupted command has to close its stores: one that hangs would keep it. */
const CLOSE_LIMIT_MS = 3_000;

const args = process.argv.slice(2);

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A closed pipe (`events tail | head`) means that its reader has all it wants.
  if (error.code !== 'EPIPE') reportCliFailure(resultLostError(error), isJson(args), process);
  process.exit();
});
// A command does its work and keeps its exit code where its progress can't be written.
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
for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, interrupt);

await runProgram(args, process, stop.signal);
