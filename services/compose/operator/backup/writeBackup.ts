import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { writeFileAtomically } from '../../../../infra/files/atomicWrite.ts';
import { openFileTileTrees } from '../../../../infra/files/tileStore.ts';
import { readRegularFile } from '../../../../infra/lib/regularFile.ts';
import { copyEventLog, copyKeyStore, endOfEventLog } from '../../../../infra/sqlite/backup.ts';
import { hasProtectedTexts } from '../../../../infra/sqlite/eventStore/database.ts';
import { keyStoreFile } from '../../../../infra/sqlite/keyStore/database.ts';
import type { Config } from '../../../../shared/lib/config/config.ts';
import { isTurnlogError } from '../../../../shared/lib/errors/turnlogError.ts';
import { logIdAt } from '../../../../shared/eventlog/identity/logIdentity.ts';
import type { Position } from '../../../../shared/ports/eventStore.ts';
import { isoTime } from '../../../../shared/ports/clock.ts';
import { copyTree } from '../../../../shared/transparency/copyTree.ts';
import {
  ownOrigin,
  readLogTrees,
  type LogTrees,
} from '../../../../shared/transparency/logTrees.ts';
import type { TileReader, TreeState } from '../../../../shared/transparency/tileStore.ts';
import { signingConfig, treeFilesOf } from '../../features/prover.ts';
import { locateStorage, type EmbeddedLocation, type ReplicaLocation } from '../../logLocation.ts';
import { systemClock } from '../../system.ts';
import { requireMasterKeyFile, requireTextKeys } from '../../textKeys.ts';
import type { Operator } from '../operator.ts';
import { backupError, type BackupFolders, type BackupManifest } from './backupFolder.ts';

export const BACKUP_FILES = {
  masterKey: 'master.key',
  signingKey: 'log-signing-key.pem',
  webhookProgress: 'webhook-progress',
  trees: 'tlog',
  /** Of a transparency log in a database. */
  checkpoint: 'checkpoint',
} as const;

interface BackupOptions {
  config: Config;
  operator: Pick<Operator, 'store' | 'tiles'>;
  to: BackupFolders;
  /** Stops where the next call continues. */
  signal: AbortSignal;
  onProgress: (progress: { events: number; leaves: number }) => void;
}

export interface WrittenBackup extends Pick<BackupManifest, 'at' | 'origin' | 'log' | 'leaves'> {
  /** Sentences on what has to be backed up by other means, or is missing here. */
  notIncluded: string[];
  /** True if the master key file of a database of keys does not exist. */
  lacksMasterKey: boolean;
}

/** A tree as it is at a moment: it may grow, and still has these leaves. */
interface TreeMoment {
  reader: TileReader;
  origin: string;
  state: TreeState;
  checkpoint: string | undefined;
}

async function copyFileIfExists(from: string, to: string): Promise<boolean> {
  if (!existsSync(from)) return false;
  await writeFileAtomically({ path: to, bytes: await readRegularFile(from) });
  return true;
}

const NOT_INCLUDED = {
  cluster:
    'The events are in the cluster of EVENTSTOREDB_URL: back it up with its own tools, before this command, so that the keys of all its texts are here.',
  database:
    'The keys of texts and the transparency log are in PostgreSQL: back up the database with its own tools, after the cluster: pg_dump --schema=turnlog. Its other tables are read models, which are rebuilt.',
  tree: (damage: string) => `The transparency log could not be copied as a whole: ${damage}`,
  masterKey: (file: string) =>
    `The master key is missing, without which the keys of texts open no text: there is no ${file}.`,
  signingKey: (file: string) => `The signing key of the transparency log is missing: ${file}.`,
};

const copyMasterKey = (file: string, { to }: BackupOptions): Promise<boolean> =>
  copyFileIfExists(file, join(to.keysFolder, BACKUP_FILES.masterKey));

/** Copies the key of the transparency log. Returns what is missing. */
async function copySigningKey(
  { config, to }: BackupOptions,
  dataFolder: string,
): Promise<string[]> {
  const { keyFile } = signingConfig(config, dataFolder);
  const copied = await copyFileIfExists(keyFile, join(to.keysFolder, BACKUP_FILES.signingKey));
  return copied ? [] : [NOT_INCLUDED.signingKey(keyFile)];
}

async function readTreeMoment(
  { config }: BackupOptions,
  place: EmbeddedLocation,
  trees: LogTrees,
): Promise<TreeMoment> {
  const origin = ownOrigin(trees, config.LOG_ORIGIN);
  const reader = treeFilesOf(place)(origin);
  // In this order: what a checkpoint covers is stored before.
  const checkpoint = await reader.readCheckpoint();
  return { reader, origin, checkpoint, state: await reader.state() };
}

/** The result, or the message of `proof_invalid`: a damaged tree does not prevent a backup of the log. */
const orDamage = <Result>(work: Promise<Result>): Promise<Result | { damage: string }> =>
  work.catch((error: unknown) => {
    if (!isTurnlogError(error, 'proof_invalid')) throw error;
    return { damage: error.message };
  });

async function copyTreeMoment(
  { reader, origin, ...moment }: TreeMoment,
  { to, signal }: BackupOptions,
  onLeaves: (leaves: number) => void,
): Promise<boolean> {
  if (moment.checkpoint === undefined && moment.state.size === 0) return true;
  const target = await openFileTileTrees(join(to.folder, BACKUP_FILES.trees)).open(origin);
  return copyTree({ ...moment, from: reader, to: target, signal, onProgress: onLeaves });
}

/** Copies the key store, and reads the end of the log in the moment to which its copy belongs. */
async function copyKeys(place: EmbeddedLocation, to: string): Promise<Position | undefined> {
  const { log, keysFolder } = place;
  const readEnd = (): Position | undefined =>
    'folder' in log ? endOfEventLog(log.folder) : undefined;
  const isLogWithoutKeys =
    'folder' in log && !existsSync(keyStoreFile(keysFolder)) && !hasProtectedTexts(log.folder);
  if (isLogWithoutKeys) return readEnd();
  requireTextKeys(place);
  return copyKeyStore(keysFolder, to, readEnd);
}

/** Copies what a process has in its folders. Resolves with undefined if the signal stopped it. */
async function backUpFolder(
  options: BackupOptions,
  place: EmbeddedLocation,
  trees: LogTrees,
): Promise<WrittenBackup | undefined> {
  const { config, to, signal, onProgress } = options;
  const { log, dataFolder } = place;
  const progress = { events: 0, leaves: 0 };
  // The order makes the backup consistent. The log holds what the tree and the webhooks have dealt with,
  // so it comes after them. The keys belong to the same moment as the end of the log.
  const tree = await orDamage(readTreeMoment(options, place, trees));
  const { webhookProgress } = BACKUP_FILES;
  await copyFileIfExists(join(dataFolder, webhookProgress), join(to.folder, webhookProgress));
  const end = await copyKeys(place, to.keysFolder);
  const at = isoTime(systemClock.now());
  // Only a log without keys has none.
  await copyMasterKey(requireMasterKeyFile(place), options);
  const missing = await copySigningKey(options, dataFolder);
  if ('folder' in log && end !== undefined) {
    const complete = await copyEventLog({
      from: log.folder,
      to: to.folder,
      end,
      signal,
      onProgress: (events) => onProgress(Object.assign(progress, { events })),
    });
    if (!complete) return undefined;
  }
  const onLeaves = (leaves: number): void => onProgress(Object.assign(progress, { leaves }));
  const copied = 'damage' in tree ? tree : await orDamage(copyTreeMoment(tree, options, onLeaves));
  if (copied === false) return undefined;
  const damage = copied === true ? [] : [NOT_INCLUDED.tree(copied.damage)];
  return {
    at,
    origin: config.LOG_ORIGIN,
    log:
      end === undefined
        ? null
        : { log_id: logIdAt(trees.identity, end), events: progress.events, position: end },
    leaves: 'damage' in tree ? 0 : tree.state.size,
    notIncluded: [...('cluster' in log ? [NOT_INCLUDED.cluster] : []), ...damage, ...missing],
    lacksMasterKey: false,
  };
}

/** Copies the files of a process whose stores are servers. */
async function backUpFiles(options: BackupOptions, place: ReplicaLocation): Promise<WrittenBackup> {
  const { config, operator, to } = options;
  const master = requireMasterKeyFile(place);
  const lacksMasterKey = !(await copyMasterKey(master, options));
  const missing = [
    ...(lacksMasterKey ? [NOT_INCLUDED.masterKey(master)] : []),
    ...(await copySigningKey(options, config.DATA_DIR)),
  ];
  const head = await orDamage((await operator.tiles()).head());
  const damage = head && 'damage' in head ? [NOT_INCLUDED.tree(head.damage)] : [];
  if (head && 'note' in head)
    await writeFileAtomically({
      path: join(to.folder, BACKUP_FILES.checkpoint),
      bytes: head.note,
    });
  return {
    at: isoTime(systemClock.now()),
    origin: config.LOG_ORIGIN,
    log: null,
    leaves: null,
    notIncluded: [NOT_INCLUDED.cluster, NOT_INCLUDED.database, ...damage, ...missing],
    lacksMasterKey,
  };
}

/**
 * Copies what is needed to restore a service into two folders, beside a running service: events,
 * transparency log and progress of webhooks, and apart from them all keys. Continues a copy that was
 * interrupted; the backup is of the moment of the last call. Resolves with undefined if the signal
 * stopped it. Throws `configuration_invalid` for an empty log and without a master key file of a database,
 * and errors of the stores.
 */
export async function writeBackup(options: BackupOptions): Promise<WrittenBackup | undefined> {
  const place = locateStorage(options.config);
  const trees = await readLogTrees(options.operator.store);
  if (!trees) throw backupError('The log is empty: there is nothing to back up.');
  return place.kind === 'embedded'
    ? backUpFolder(options, place, trees)
    : backUpFiles(options, place);
}
