import { resolve, sep } from 'node:path';
import type { Command } from 'commander';
import { parseConfig, type Config } from '../../../shared/lib/config/config.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { acceptRestored } from '../../../shared/restoredLogs/acceptRestored.ts';
import {
  CHANGED_LOG_ADVICE,
  type Comparison,
  type KeptCheckpoints,
} from '../../../shared/transparency/kept/compareTree.ts';
import {
  openBackup,
  withFolderErrors,
  type BackupFolders,
  type BackupManifest,
} from '../../compose/operator/backup/backupFolder.ts';
import { restoreBackup } from '../../compose/operator/backup/restoreBackup.ts';
import { locateStorage } from '../../compose/logLocation.ts';
import { openKeptCheckpoints, openOperator } from '../../compose/operator/operator.ts';
import type { CliContext, TerminalContext, WithTerminal } from '../context.ts';
import { parseToday } from '../accounts/confirmRetention.ts';
import { parseReason } from '../reason.ts';
import {
  confirmDate,
  eraseAgain,
  openReceipts,
  readErasedIds,
  readReceiptFiles,
  type ErasureOutcome,
} from './eraseAgain.ts';
import { describeOutsideEvidence } from '../audit/verify.ts';
import { locateBackup, WITHOUT_OTHERS, type FolderOptions } from './folders.ts';
import { findBackupFault, findTreeAhead } from './verifyCopy.ts';

interface RestoreOptions extends FolderOptions {
  checkpoint?: string[];
  receipts?: string[];
  erased?: string[];
  /** Milliseconds since the epoch. */
  today?: number;
  acceptRestored?: string;
  damaged?: true;
}

const restoreError = (message: string): TurnlogError =>
  new TurnlogError('configuration_invalid', message);

const KEPT_UNFINISHED =
  'No service starts on the folders before the restore is finished: repeat the command.';

/** Throws for a backup that does not fit. */
async function requireFit(
  terminal: TerminalContext,
  { damaged }: RestoreOptions,
  manifest: BackupManifest,
): Promise<string | undefined> {
  const misfit =
    manifest.log === null
      ? undefined
      : await findBackupFault(terminal, { ...terminal.env, ...WITHOUT_OTHERS });
  terminal.signal.throwIfAborted();
  if (misfit === undefined || damaged) return misfit;
  throw restoreError(
    `The backup does not fit: ${misfit} Restore it all the same with --damaged. ${KEPT_UNFINISHED}`,
  );
}

/** True for a place with checkpoints, and for a file in it. */
const isIn =
  (place: string) =>
  ({ name }: { name: string }): boolean =>
    name === place || name.startsWith(place.endsWith(sep) ? place : place + sep);

/**
 * Throws where a place that was named could not be compared: also for a folder without a checkpoint of
 * this log, such as one that is not mounted.
 */
function requireCompared(
  { compared, troubles, refusal }: Comparison,
  named: readonly string[],
): void {
  for (const place of named) {
    const missed = troubles.find(isIn(place));
    if (missed)
      throw restoreError(
        `${missed.name} ${missed.trouble}. Nothing was compared. ${KEPT_UNFINISHED}`,
      );
    if (refusal === undefined && !compared.some(isIn(place)))
      throw restoreError(
        `${place} holds no checkpoint of the transparency log of this backup. Nothing was compared. ${KEPT_UNFINISHED}`,
      );
  }
}

const ADDRESS = /^https?:\/\//;

/** The places of the option; paths are made absolute. */
const namedPlaces = ({ checkpoint = [] }: RestoreOptions): string[] =>
  checkpoint.map((path) => (ADDRESS.test(path) ? path : resolve(path)));

/** Compares the log with what others know of it, and a log in a cluster with its transparency log. */
async function compareRestored(
  { operator, signal }: CliContext,
  places: readonly KeptCheckpoints[],
  { log, origin }: BackupManifest,
): Promise<Comparison> {
  const comparison = await operator.compareWithOutside(signal, places);
  // A log in a folder was verified together with its tree.
  if (log !== null || comparison.refusal !== undefined) return comparison;
  return { ...comparison, refusal: await findTreeAhead(operator, origin) };
}

/**
 * Compares the restored log. If it lacks what others or its transparency log know, the declaration of
 * the operator begins another tree. Resolves with the comparison, and the declared id.
 */
async function compareOrDeclare(
  context: CliContext,
  { named, receipts }: { named: readonly string[]; receipts: KeptCheckpoints },
  manifest: BackupManifest,
  reason: string | undefined,
): Promise<{ comparison: Comparison; declared: string | undefined }> {
  const places = [...named.map(openKeptCheckpoints), receipts];
  const comparison = await compareRestored(context, places, manifest);
  requireCompared(comparison, named);
  if (comparison.refusal === undefined) return { comparison, declared: undefined };
  const refusal = comparison.refusal.replace(` ${CHANGED_LOG_ADVICE}`, '');
  if (reason === undefined)
    throw restoreError(
      `${refusal} To go on from this backup all the same, add: --accept-restored <reason>. ${KEPT_UNFINISHED}`,
    );
  const { log_id } = await acceptRestored(context.operator, { replaces: [], reason });
  const after = await compareRestored(context, places, manifest);
  if (after.refusal !== undefined) throw restoreError(`${after.refusal} ${KEPT_UNFINISHED}`);
  return { comparison: { ...after, refusal }, declared: log_id };
}

/** The erasures in the files of the options. */
const readErasures = async ({ receipts = [], erased = [] }: RestoreOptions) => ({
  files: (await Promise.all(receipts.map(readReceiptFiles))).flat(),
  listed: (await Promise.all(erased.map(readErasedIds))).flat(),
});

/** Compares the log, and erases again what was erased since the backup. */
async function bringUpToDate(
  context: CliContext,
  options: RestoreOptions,
  manifest: BackupManifest,
  { files, listed }: Awaited<ReturnType<typeof readErasures>>,
) {
  const { operator } = context;
  const { erasures, checkpoints } = await openReceipts(operator, files);
  const places = {
    named: namedPlaces(options),
    receipts: { name: 'receipts', read: async () => checkpoints },
  };
  const compared = await compareOrDeclare(context, places, manifest, options.acceptRestored);
  if (options.today !== undefined) await confirmDate(context, options.today, manifest.at);
  // What is named twice is proven.
  const outcomes = await eraseAgain(context, [...listed, ...erasures]);
  const refused = outcomes.filter(({ outcome }) => outcome === 'refused');
  if (refused.length > 0)
    throw restoreError(
      `${refused.map(({ id, reason }) => `${id} was not erased again: ${reason}`).join('\n')}\nTo restore it unerased, leave it out of what is named. ${KEPT_UNFINISHED}`,
    );
  return { ...compared, outcomes };
}

const OUTCOMES = {
  erased_again: 'was erased since the backup, and is erased again',
  erased_in_backup: 'is erased in the backup',
  not_in_backup: 'is not in the backup',
  refused: 'was not erased',
} as const;

function describeRestore(
  { at, log }: BackupManifest,
  config: Config,
  result: Awaited<ReturnType<typeof bringUpToDate>> & { misfit: string | undefined },
): string[] {
  const { comparison, declared, outcomes, misfit } = result;
  return [
    `The backup of ${at} is restored${log === null ? '' : ` into ${config.DATA_DIR}: ${log.events} events`}.`,
    ...(misfit === undefined ? [] : [`It does not fit: ${misfit}`]),
    ...describeOutsideEvidence(comparison).lines,
    ...(declared === undefined
      ? []
      : [
          `${comparison.refusal}`,
          `It was declared restored: its log is ${declared} from now on.`,
          'The next start of the service begins its new transparency log; audit verify needs that.',
        ]),
    ...(declared === undefined && comparison.compared.length === 0
      ? [
          'It was compared with no checkpoint kept elsewhere: whether the log went on after the backup is not known.',
        ]
      : []),
    ...outcomes.map(({ id, outcome, source }) => `${id} ${OUTCOMES[outcome]} (${source}).`),
    ...(outcomes.length === 0
      ? [
          'Who was erased after the backup is readable again, unless --receipts or --erased names them.',
        ]
      : []),
  ];
}

const presentOutcome = ({ id, outcome, source }: ErasureOutcome) => ({ id, outcome, source });

async function restoreInto(
  terminal: TerminalContext,
  from: BackupFolders,
  options: RestoreOptions,
): Promise<void> {
  const { env, output, progress, signal } = terminal;
  const config = parseConfig(env);
  // Before hours of copying.
  const named = await readErasures(options);
  const manifest = await openBackup(from);
  const unfinished = await restoreBackup({
    config,
    from,
    manifest,
    signal,
    onProgress: (files) => progress.update(() => `Files restored: ${files}`),
  });
  try {
    const misfit = await requireFit(terminal, options, manifest);
    const operator = await openOperator(config, terminal.logger(config.LOG_LEVEL), signal);
    let result: Awaited<ReturnType<typeof bringUpToDate>>;
    try {
      result = await bringUpToDate({ ...terminal, operator }, options, manifest, named);
    } finally {
      await operator.close();
    }
    await unfinished.finish();
    const { comparison, declared, outcomes } = result;
    output.show(
      {
        id: manifest.id,
        at: manifest.at,
        log: manifest.log,
        misfit: misfit ?? null,
        ...describeOutsideEvidence(comparison).data,
        log_id: declared ?? manifest.log?.log_id ?? null,
        erasures: outcomes.map(presentOutcome),
      },
      ...describeRestore(manifest, config, { ...result, misfit }),
    );
  } finally {
    if (signal.aborted) progress.end(`Interrupted. ${KEPT_UNFINISHED}`);
    unfinished.release();
  }
}

/** Restores a backup into the configured folders, which have to be empty. */
async function restore(
  terminal: TerminalContext,
  folder: string,
  options: RestoreOptions,
): Promise<void> {
  const place = locateStorage(parseConfig(terminal.env));
  const from = await withFolderErrors(folder, () => locateBackup(folder, options, place));
  const target = place.kind === 'embedded' ? place.dataFolder : from.folder;
  await withFolderErrors(target, () => restoreInto(terminal, from, options));
}

const collect = (path: string, before: string[] = []): string[] => [...before, path];

/** `restore` */
export function addRestoreCommand(program: Command, alone: WithTerminal): void {
  program
    .command('restore')
    .description(
      'restore a backup into the configured folders (DATA_DIR, KEYS_DIR), which have to be empty; compare it with checkpoints kept elsewhere, and erase again what was erased since',
    )
    .argument('<folder>', 'the folder of the backup')
    .option('--keys <folder>', 'the folder of its keys; default: <folder>-keys')
    .option('--keys-beside', 'its keys are in <folder>/keys')
    .option(
      '--checkpoint <path>',
      'a file, folder or address with checkpoints that were kept elsewhere; may be repeated',
      collect,
    )
    .option(
      '--receipts <path>',
      'a file or folder with receipts of erasures; may be repeated',
      collect,
    )
    .option(
      '--erased <file>',
      'a file with the ids of what was erased, one a line; may be repeated',
      collect,
    )
    .option(
      '--today <date>',
      'the date of today, as 2026-11-25, by which minimum retention is counted for --erased: recorded as by retention confirm clock',
      parseToday,
    )
    .option(
      '--accept-restored <reason>',
      'go on from the backup although the log was longer, or another one: recorded in the log, whose transparency log gets another origin',
      parseReason,
    )
    .option('--damaged', 'restore it although it does not fit')
    .action((folder: string, options: RestoreOptions) =>
      alone((terminal) => restore(terminal, folder, options)),
    );
}
