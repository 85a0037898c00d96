import type { Command } from 'commander';
import type {
  LogReading,
  VerificationProgress,
  VerificationResult,
} from '../../shared/readModels/integrity/verifyRows.ts';
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

const FORGED_LOG =
  'No rows were compared. Restore the log first: read models rebuilt from a changed log repeat its changes.';

/** A comparison of the log with its transparency log, or why there was none. */
type LogVerdict = Awaited<ReturnType<typeof verifyOwnLog>> & { trouble?: string };

const NOT_READ: LogVerdict = { complete: false, events: 0, leaves: null, misfit: null };

/** Compares the log with its transparency log, unless the key that signs that is not known here. */
async function verifyLogOfRows(context: CliContext, reading: LogReading): Promise<LogVerdict> {
  try {
    return await verifyOwnLog(context, reading);
  } catch (error) {
    if (!isTurnlogError(error, 'configuration_invalid')) throw error;
    return { complete: true, events: 0, leaves: null, misfit: null, trouble: error.message };
  }
}

/** True if a log that was not compared has to be: it declares a tree, or is empty beside one. */
async function isComparisonOwed({ operator }: CliContext): Promise<boolean> {
  const trees = await readLogTrees(operator.store);
  return trees === undefined || trees.declared.size > 0;
}

function rowsLines({ complete, rows, differing, named }: VerificationResult): string[] {
  const verdict =
    differing === 0
      ? `The ${rows} rows${complete ? '' : ' that were compared'} say what the log says.`
      : `${differing} rows do not say what the log says:`;
  return [
    ...(rows > 0 || complete ? [verdict] : ['Interrupted before any row was compared.']),
    ...named.map(({ table, key, column }) => `  ${table} ${key}: ${MEANING[column] ?? column}`),
    ...(differing === 0 ? [] : [`${REBUILD_ADVICE}.`]),
    ...(complete ? [] : ['Interrupted; the next verification goes on from here.']),
  ];
}

/** Describes the rows that a verification has taken from an interrupted one, or why it took none. */
const continuedLines = ({ continued, anew }: VerificationResult): string[] => [
  ...(continued
    ? [
        `An interrupted verification was continued: it had verified the events up to ${continued.after}, and compared ${continued.rows} rows. Later changes to these events and rows are not detected. --anew verifies everything again.`,
      ]
    : []),
  ...(anew === undefined ? [] : [`An interrupted verification was not continued: ${anew}`]),
];

function logLines({ complete, leaves, trouble }: LogVerdict): string[] {
  if (!complete) return [];
  if (leaves !== null) return [`The log fits its transparency log of ${leaves} leaves.`];
  const why = trouble === undefined ? '' : `: ${trouble}`;
  return [
    `The log itself was not compared with a transparency log${why}. \`audit verify\` says more.`,
  ];
}

/** `projections verify` */
function addVerifyCommand(projections: Command, run: WithOperator): void {
  projections
    .command('verify')
    .description(
      'compare all rows of the read models with the log, and the log with its transparency log, with or without a running server; an interrupted verification continues next time',
    )
    .option('--anew', 'do not continue an interrupted verification')
    .action(({ anew = false }: { anew?: boolean }) =>
      run(async (context) => {
        const { operator, output, progress, signal, exitWith } = context;
        let last = '';
        let log = NOT_READ;
        const result = await operator.verifyRows({
          anew,
          signal,
          async verifyLog(reading) {
            log = await verifyLogOfRows(context, reading);
            if (log.misfit !== null) return 'misfit';
            return log.trouble === undefined ? 'fits' : 'not_compared';
          },
          onProgress(step) {
            last = describeStep(step);
            progress.update(() => last);
          },
        });
        if (last !== '') progress.end(last);
        const { named, ...rest } = result;
        const data = { ...rest, first: named, log };
        const { misfit, trouble } = log;
        if (misfit !== null) {
          output.show(data, misfit, FORGED_LOG);
          return exitWith(EXIT.failed);
        }
        output.show(data, ...rowsLines(result), ...continuedLines(result), ...logLines(log));
        const isOwed = trouble !== undefined && (await isComparisonOwed(context));
        if (result.differing > 0 || isOwed) exitWith(EXIT.failed);
        if (!result.complete) exitWith(EXIT.interrupted);
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
