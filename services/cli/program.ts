import { Command, CommanderError } from 'commander';
import { createLogger } from '../../shared/lib/logger.ts';
import { warnOfMisspelt } from '../process/warnOfOptions.ts';
import { addAccountCommands } from './accounts.ts';
import { addAuditCommands } from './audit.ts';
import { addCopyCommand } from './copy.ts';
import { addDatabaseCommands } from './database.ts';
import { addEraseCommands } from './erase.ts';
import { addEventCommands } from './events.ts';
import type { CommandProcess } from './context.ts';
import { EXIT_CODES_HELP } from './exitCodes.ts';
import { reportCliFailure } from './failure.ts';
import { addLogCommands } from './log.ts';
import { addKeyCommands } from './keys.ts';
import { addProjectionCommands } from './projections.ts';
import { addRelayCommands } from './relay.ts';
import { addReplayCommands } from './replay.ts';
import { createRunners } from './run.ts';
import { addTextKeyCommands } from './textKeys.ts';
import { versions } from './version.ts';
import { jsonLine } from './visible.ts';

const versionText = (json: boolean): string => {
  const all = versions();
  return json
    ? jsonLine(all)
    : `turnlog ${all.turnlog}, read models ${all.read_models}, Node.js ${all.node}`;
};

/** The grammar of all commands. With `json`, nothing but JSON is written. */
function createProgram(json: boolean, target: CommandProcess, signal: AbortSignal): Command {
  const program = new Command('npm run cli --')
    .description(
      "Turnlog's operator commands. They work on the configured store (DATA_DIR, EVENTSTOREDB_URL, DATABASE_URL), also beside a running server. It has to be there: only `accounts open`, `events copy --to` and `database migrate` make one.",
    )
    .option('--json', 'answer with one JSON document, or JSON lines; errors are JSON too')
    .version(versionText(json), '--version', 'print the versions')
    .configureHelp({ showGlobalOptions: true })
    // A failure is told in one place, as JSON where that is asked for.
    .configureOutput({
      writeOut: (text) => void target.stdout.write(text),
      writeErr: (text) => void (json || target.stderr.write(text)),
      outputError: () => undefined,
    })
    .exitOverride()
    .addHelpText('afterAll', EXIT_CODES_HELP)
    .hook('preAction', () => warnOfMisspelt(target.env, createLogger('warn', target.stderr)));
  const runners = createRunners(json, target, signal);
  const { withOperator, withTerminal } = runners;
  addEraseCommands(program, addAccountCommands(program, withOperator), withOperator);
  addTextKeyCommands(program, addKeyCommands(program, withOperator), runners);
  addLogCommands(program, withOperator);
  addProjectionCommands(program, withOperator);
  addRelayCommands(program, withOperator);
  addAuditCommands(program, withOperator, withTerminal);
  addDatabaseCommands(program, withTerminal);
  addReplayCommands(program, withTerminal);
  addCopyCommand(addEventCommands(program, withOperator), withTerminal);
  return program;
}

/** True where `--json` stands among the arguments, even if the rest of them can't be parsed. */
export const isJson = (args: readonly string[]): boolean => args.includes('--json');

/**
 * Runs one command to its end and sets the exit code of its process. The signal interrupts it. Never
 * rejects: a failure is reported on standard error.
 */
export async function runProgram(
  args: readonly string[],
  target: CommandProcess,
  signal: AbortSignal,
): Promise<void> {
  const json = isJson(args);
  try {
    await createProgram(json, target, signal).parseAsync(args, { from: 'user' });
  } catch (error) {
    // Help and version were printed already.
    const isDone = error instanceof CommanderError && error.exitCode === 0;
    if (!isDone) reportCliFailure(error, json, target);
  }
}
