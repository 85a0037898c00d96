import type { Command } from 'commander';
import type { VerificationProgress } from '../../shared/readModels/integrity/verifyRows.ts';
import { REBUILD_ADVICE } from '../../shared/readModels/integrity/damagedRows.ts';
import { parseConfig } from '../../shared/lib/config/config.ts';
import { isTurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { migrateDatabase } from '../compose/replica/postgres.ts';
import { readLogTrees } from '../../shared/transparency/logTrees.ts';
import { verifyOwnLog } from './audit/verify.ts';
import type { CliContext, WithOperator, WithTerminal } from './context.ts';
import { EXIT } from './exitCodes.ts';

const MEANING: Readonly<Record<string, string>> = {
  missing: 'the row is missing',
  unrecorded: 'no event made the row',
};

const describeStep = ({ step, rows, differing }: VerificationProgress): string =>
  'copying' in step
    ? `${step.copying.toFixed(1)} % of the log read`
    : `${step.comparing}: ${rows} rows compared, ${differing} differ`;

const NO_ROWS = { rows: 0, differing: 0, first: [] };
const FORGED_LOG =
  'No rows were compared. Restore the log first: read models rebuilt from a changed log repeat its changes.';

/**
 * The comparison of the log with its transparency log, or why there is none. `isOwed` is true without one
 * where the log declares a tree, or is empty beside one.
 */
async function verifyLogOfRows(context: CliContext): Promise<{
  log: Awaited<ReturnType<typeof verifyOwnLog>> & { trouble?: string };
  isOwed: boolean;
}> {
  try {
    return { log: await verifyOwnLog(context), isOwed: false };
  } catch (error) {
    if (!isTurnlogError(error, 'configuration_invalid')) throw error;
    const trees = await readLogTrees(context.operator.store);
    const log = { complete: true, events: 0, leaves: null, misfit: null, trouble: error.message };
    return { log, isOwed: trees === undefined || trees.declared.size > 0 };
  }
}

/** `projections verify` */
function addVerifyCommand(projections: Command, run: WithOperator): void {
  projections
    .command('verify')
    .description(
      'compare all rows of the read models with the log, and the log with its transparency log, with or without a running server; an interrupted verification continues next time',
    )
    .action(() =>
      run(async (context) => {
        const { operator, output, progress, signal, exitWith } = context;
        let last = '';
        const { log: compared, isOwed } = await verifyLogOfRows(context);
        const { complete: isLogRead, ...log } = compared;
        if (log.misfit !== null) {
          output.show({ complete: true, ...NO_ROWS, log }, log.misfit, FORGED_LOG);
          return exitWith(EXIT.failed);
        }
        if (!isLogRead) {
          output.show({ complete: false, ...NO_ROWS, log }, 'Interrupted before any row was read.');
          return exitWith(EXIT.interrupted);
        }
        const result = await operator.verifyRows(signal, (step) => {
          last = describeStep(step);
          progress.update(() => last);
        });
        progress.end(last);
        const { complete, rows, differing, named } = result;
        const verdict =
          differing === 0
            ? `The ${rows} rows${complete ? '' : ' that were compared'} say what the log says.`
            : `${differing} rows do not say what the log says:`;
        output.show(
          { complete, rows, differing, first: named, log },
          verdict,
          ...named.map(
            ({ table, key, column }) => `  ${table} ${key}: ${MEANING[column] ?? column}`,
          ),
          ...(differing === 0 ? [] : [`${REBUILD_ADVICE}.`]),
          ...(complete ? [] : ['Interrupted; the next verification goes on from here.']),
          log.leaves === null
            ? `The log itself was not compared with a transparency log${log.trouble === undefined ? '' : `: ${log.trouble}`}. \`audit verify\` says more.`
            : `The log fits its transparency log of ${log.leaves} leaves.`,
        );
        if (differing > 0 || isOwed) exitWith(EXIT.failed);
        if (!complete) exitWith(EXIT.interrupted);
      }),
    );
}

/** `projections rebuild` and `projections verify` */
export function addProjectionCommands(program: Command, run: WithOperator): void {
  const projections = program.command('projections').description('work on the read models');
  addVerifyCommand(projections, run);
  projections
    .command('rebuild')
    .description(
      'rebuild the read models from the log, with or without a running server; an interrupted rebuild continues next time',
    )
    .action(() =>
      run(async ({ operator, output, progress, signal, exitWith }) => {
        let last = '';
        let done = { events: 0, parked_streams: 0 };
        const complete = await operator.rebuild(
          signal,
          ({ events, percent, events_per_second, parked }) => {
            done = { events, parked_streams: parked };
            last = `${percent.toFixed(1)} %: ${events} events, ${events_per_second}/s${parked > 0 ? `, ${parked} streams parked` : ''}`;
            progress.update(() => last);
          },
        );
        progress.end(last);
        output.show(
          { complete, ...done },
          complete
            ? 'The read models are rebuilt; a running server goes over to them within a second.'
            : 'Interrupted; the next rebuild goes on from here.',
        );
        if (!complete) exitWith(EXIT.interrupted);
      }),
    );
}

/** `database migrate` */
export function addDatabaseCommands(program: Command, run: WithTerminal): void {
  program
    .command('database')
    .description('work on the PostgreSQL database of the read models')
    .command('migrate')
    .description(
      'migrate the database with the role that owns it; services then need no rights to create objects',
    )
    .option(
      '--grant <role...>',
      'grant services access as this role; roles granted earlier keep theirs',
    )
    .action(({ grant = [] }: { grant?: string[] }) =>
      run(async ({ env, output }) => {
        const roles = await migrateDatabase(parseConfig(env), grant);
        const others = roles.length > 0 ? `, besides its owner: ${roles.join(', ')}` : '';
        output.show({ roles }, `The database is up to date. Services may work in it${others}.`);
      }),
    );
}
