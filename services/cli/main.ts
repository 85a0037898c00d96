import { CommanderError } from 'commander';
import { createProgram } from './program.ts';
import { reportCliFailure } from './failure.ts';

// A pipe that was closed (`events tail | head`) is a reader who has seen enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? 0 : 1),
);

// Also where the command line can't be read.
const json = process.argv.includes('--json');
try {
  await createProgram(json).parseAsync();
} catch (error) {
  // Help and version were printed already.
  const isDone = error instanceof CommanderError && error.exitCode === 0;
  if (!isDone) reportCliFailure(error, json);
}
