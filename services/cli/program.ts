import { Command, CommanderError } from 'commander';
import { createLogger } from '../../shared/lib/logger.ts';
import { READ_MODELS_VERSION } from '../compose/operator/readModels.ts';
import { warnOfMisspelledOptions } from '../process/warnOfOptions.ts';
import { addAccountCommands } from './accounts/accounts.ts';
import { addAuditCommands } from './audit/audit.ts';
import { addBackupCommands } from './backup/backup.ts';
import { addCopyCommand } from './log/copy.ts';
import { addEraseCommands } from './erase.ts';
import { addEventCommands } from './log/events.ts';
import type { CommandProcess } from './context.ts';
import { EXIT_CODES_HELP } from './exitCodes.ts';
import { reportCliFailure } from './failure.ts';
import { addLogCommands } from './log/identity.ts';
import { packageVersion } from '../process/help.ts';
import { addRetentionCommands } from './accounts/confirmRetention.ts';
import { addKeyCommands } from './accounts/keys.ts';
import { addDatabaseCommands, addProjectionCommands } from './readModels.ts';
import { addRelayCommands } from './relay.ts';
import { addReplayCommands } from './replays/replay.ts';
import { createRunners } from './run.ts';
import { addTextKeyCommands } from './textKeys.ts';
import { jsonLine } from './output.ts';

/** The versions of this release, its read models and Node.js. */
const versions = (): { turnlog: string; read_models: number; node: string } => ({
  turnlog: packageVersion(),
  read_models: READ_MODELS_VERSION,
  node: process.versions.node,
});

const versionText = (json: boolean): string => {
  const all = versions();
  return json
    ? jsonLine(all)
    : `turnlog ${all.turnlog}, read models ${all.read_models}, Node.js ${all.node}`;
};

/** The grammar of all commands. With `json`, only JSON is written. */
function createProgram(json: boolean, target: CommandProcess, signal: AbortSignal): Command {
  const program = new Command('npm run cli --')
    .description(
      "Turnlog's operator commands. They work on the configured store (DATA_DIR, EVENTSTOREDB_URL, DATABASE_URL), also beside a running server. It has to be there: only `accounts open`, `events copy --to`, `restore` and `database migrate` make one.",
    )
    .option('--json', 'answer with one JSON document, or JSON lines; errors are JSON too')
    .version(versionText(json), '--version', 'print the versions')
    .configureHelp({ showGlobalOptions: true })
    // runProgram reports every failure, as text or as JSON.
    .configureOutput({
      writeOut: (text) => void target.stdout.write(text),
      writeErr: (text) => void (json || target.stderr.write(text)),
      outputError: () => undefined,
    })
    .exitOverride()
    .addHelpText('afterAll', EXIT_CODES_HELP)
    .hook('preAction', () =>
      warnOfMisspelledOptions(target.env, createLogger('warn', target.stderr)),
    );
  const runners = createRunners(json, target, signal);
  const { withOperator, withTerminal } = runners;
  addEraseCommands(program, addAccountCommands(program, withOperator), withOperator);
  addKeyCommands(program, withOperator);
  addTextKeyCommands(program, runners);
  addRetentionCommands(program, withOperator);
  addLogCommands(program, withOperator);
  addProjectionCommands(program, withOperator);
  addRelayCommands(program, withOperator);
  addAuditCommands(program, withOperator, withTerminal);
  addDatabaseCommands(program, withTerminal);
  addReplayCommands(program, withTerminal);
  addBackupCommands(program, withOperator, withTerminal);
  addCopyCommand(addEventCommands(program, withOperator), withTerminal);
  return program;
}

/** True if `--json` is among the arguments, even if the others can't be parsed. */
export const isJson = (args: readonly string[]): boolean => args.includes('--json');

/**
 * Runs one command and sets the exit code of its process. The signal interrupts it. Never rejects:
 * failures are reported on standard error.
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
