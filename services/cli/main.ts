import { Command } from 'commander';
import { parseConfig } from '../../shared/config.ts';
import { createLogger } from '../../shared/logger.ts';
import { reportFailure } from '../server/reportFailure.ts';
import { addAccountCommands } from './accounts.ts';
import { addAuditCommands } from './audit.ts';
import type { CliContext, WithOperator } from './context.ts';
import { addCopyCommand } from './copy.ts';
import { addDatabaseCommands } from './database.ts';
import { addEventCommands } from './events.ts';
import { addLogCommands } from './log.ts';
import { addKeyCommands } from './keys.ts';
import { progressLine } from './progressLine.ts';
import { addProjectionCommands } from './projections.ts';
import { addRelayCommands } from './relay.ts';
import { openOperator } from '../compose/operator.ts';

const print = (line: string): void => void process.stdout.write(`${line}\n`);
/** How long what a signal ends may take to close, which a store that hangs would hold up. */
const CLOSE_LIMIT_MS = 3_000;

function tellInterrupted(): void {
  if (process.exitCode !== 130) process.stderr.write('Interrupted.\n');
  process.exitCode = 130;
}

function openTerminal(): Omit<CliContext, 'operator'> {
  const interrupted = new AbortController();
  function interrupt(): void {
    interrupted.abort();
    setTimeout(() => {
      tellInterrupted();
      process.exit();
    }, CLOSE_LIMIT_MS).unref();
  }
  for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, interrupt);
  return {
    print,
    progress: progressLine((text) => process.stderr.write(text), process.stderr.isTTY),
    signal: interrupted.signal,
  };
}

const withOperator: WithOperator = async (command) => {
  const config = parseConfig(process.env);
  const terminal = openTerminal();
  await using opened = new AsyncDisposableStack();
  const logger = createLogger(config.LOG_LEVEL);
  const operator = opened.adopt(await openOperator(config, logger, terminal.signal), ({ close }) =>
    close(),
  );
  try {
    terminal.signal.throwIfAborted();
    await command({ operator, ...terminal });
  } catch (error) {
    if (error !== terminal.signal.reason) throw error;
    tellInterrupted();
  }
};

const program = new Command('npm run cli --').description(
  "Turnlog's operator commands. They work on DATA_DIR, also beside a running server.",
);
addAccountCommands(program, withOperator);
addKeyCommands(program, withOperator);
addLogCommands(program, withOperator);
addProjectionCommands(program, withOperator);
addRelayCommands(program, withOperator);
addAuditCommands(program, withOperator);
addDatabaseCommands(program, print);
addCopyCommand(addEventCommands(program, withOperator), openTerminal);

// A pipe that was closed (`events tail | head`) is a reader who has seen enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) =>
  process.exit(error.code === 'EPIPE' ? 0 : 1),
);

try {
  await program.parseAsync();
} catch (error) {
  reportFailure(error);
}
