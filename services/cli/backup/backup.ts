import type { Command } from 'commander';
import { parseConfig } from '../../../shared/lib/config/config.ts';
import {
  beginBackup,
  closeBackupDatabases,
  completeBackup,
  withFolderErrors,
  type BackupFolders,
} from '../../compose/operator/backup/backupFolder.ts';
import { writeBackup, type WrittenBackup } from '../../compose/operator/backup/writeBackup.ts';
import { locateStorage } from '../../compose/logLocation.ts';
import type { CliContext, WithOperator, WithTerminal } from '../context.ts';
import { EXIT } from '../exitCodes.ts';
import { formatRate } from '../progressLine.ts';
import { environmentOfBackup, locateBackup, type FolderOptions } from './folders.ts';
import { addRestoreCommand } from './restore.ts';
import { findBackupFault } from './verifyCopy.ts';

function describeBackup(
  { folder, keysFolder }: BackupFolders,
  { at, log, leaves, notIncluded }: WrittenBackup,
  misfit: string | undefined,
): string[] {
  const contents =
    log === null
      ? 'The files of this process'
      : `${log.events} events, ${leaves} leaves of the transparency log`;
  return [
    `${folder} is a backup of ${at}: ${contents}.`,
    `Its keys are in ${keysFolder}. Keep them apart from it: both together open every text.`,
    ...notIncluded,
    ...(misfit === undefined
      ? [log === null ? 'There was no log to verify.' : 'It was verified: log, tree and texts fit.']
      : [
          `It was copied as it is, and does not fit: ${misfit}`,
          'Look at the service with: audit verify --texts',
        ]),
  ];
}

/** Copies, verifies and seals; undefined if it was interrupted. */
async function makeBackup(
  context: CliContext,
  folders: BackupFolders,
): Promise<{ written: WrittenBackup; misfit: string | undefined; id: string } | undefined> {
  const { env, operator, progress, signal } = context;
  const began = performance.now();
  const { id, resumed, release } = await beginBackup(folders);
  try {
    if (resumed) context.progress.update(() => 'Continuing a backup that was interrupted');
    const written = await writeBackup({
      config: parseConfig(env),
      operator,
      to: folders,
      signal,
      onProgress: ({ events, leaves }) =>
        progress.update(
          () => `${events} events and ${leaves} leaves copied, ${formatRate(events, began)}`,
        ),
    });
    if (!written || signal.aborted) return undefined;
    const misfit =
      written.log === null
        ? undefined
        : await findBackupFault(context, environmentOfBackup(env, folders));
    if (signal.aborted) return undefined;
    closeBackupDatabases(folders);
    const { notIncluded: _said, lacksMasterKey: _lacks, ...described } = written;
    await completeBackup(folders, { id, ...described, misfit: misfit ?? null });
    return { written, misfit, id };
  } finally {
    release();
  }
}

/** The exit code is 1 if the copy does not fit or lacks the master key, 130 if it is interrupted. */
async function backUp(context: CliContext, folder: string, options: FolderOptions): Promise<void> {
  const { env, output, progress, exitWith } = context;
  const folders = await withFolderErrors(folder, () =>
    locateBackup(folder, options, locateStorage(parseConfig(env))),
  );
  const named = { folder: folders.folder, keys_folder: folders.keysFolder };
  const madeBackup = await withFolderErrors(folders.folder, () => makeBackup(context, folders));
  if (!madeBackup) {
    progress.end('Interrupted.');
    output.show(
      { complete: false, ...named },
      'Interrupted. The same command continues; until then the folders hold no backup.',
    );
    return exitWith(EXIT.interrupted);
  }
  const { written, misfit, id } = madeBackup;
  const { notIncluded: not_included, lacksMasterKey, ...described } = written;
  output.show(
    { complete: true, ...named, id, ...described, misfit: misfit ?? null, not_included },
    ...describeBackup(folders, written, misfit),
  );
  if (misfit !== undefined || lacksMasterKey) exitWith(EXIT.failed);
}

/** `backup` and `restore` */
export function addBackupCommands(program: Command, run: WithOperator, alone: WithTerminal): void {
  program
    .command('backup')
    .description(
      'copy the log, the transparency log and, apart from them, the keys into new folders, also beside a running server, and verify the copy; an interrupted backup continues next time',
    )
    .argument('<folder>', 'a new folder, for everything but the keys')
    .option('--keys <folder>', 'another new folder, for the keys; default: <folder>-keys')
    .option('--keys-beside', 'put the keys beside the log, in <folder>/keys')
    .action((folder: string, options: FolderOptions) =>
      run((context) => backUp(context, folder, options)),
    );
  addRestoreCommand(program, alone);
}
