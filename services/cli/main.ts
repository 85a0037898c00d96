import { CommanderError } from 'commander';
import { createProgram } from './program.ts';
import { reportCliFailure, resultLost } from './failure.ts';

// Also where the command line can't be read.
const json = process.argv.includes('--json');

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // A pipe that was closed (`events tail | head`) is a reader who has seen enough.
  if (error.code !== 'EPIPE') reportCliFailure(resultLost(error), json);
  process.exit();
});
// A command does its work, and ends as it came out, also where nobody can be told of its progress.
process.stderr.on('error', () => undefined);

try {
  await createProgram(json).parseAsync();
} catch (error) {
  // Help and version were printed already.
  const isDone = error instanceof CommanderError && error.exitCode === 0;
  if (!isDone) reportCliFailure(error, json);
}
