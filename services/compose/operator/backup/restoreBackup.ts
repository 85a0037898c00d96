import { createWriteStream, existsSync } from 'node:fs';
import { lstat, mkdir, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { writeFileAtomically } from '../../../../infra/files/atomicWrite.ts';
import { readMasterKeys } from '../../../../infra/files/masterKeyFile.ts';
import { readRegularFile } from '../../../../infra/lib/regularFile.ts';
import { createDataFolder } from '../../../../infra/sqlite/dataFolder.ts';
import { acquireServerLock } from '../../../../infra/sqlite/serverLock.ts';
import type { Config } from '../../../../shared/lib/config/config.ts';
import { signingConfig } from '../../features/prover.ts';
import { keysFolderOption, locateStorage } from '../../logLocation.ts';
import { readSigningKeys } from '../../signingKeys.ts';
import { masterKeyFileOf } from '../../textKeys.ts';
import {
  backupError,
  KEYS_BESIDE,
  namesIn,
  openToRead,
  type BackupFolders,
  type BackupManifest,
} from './backupFolder.ts';
import { BACKUP_FILES } from './writeBackup.ts';
import { MANIFEST_FILE, UNFINISHED_RESTORE } from './unfinishedRestore.ts';

/** Left by a restore that was killed at its beginning; the next one replaces them. */
const LEFTOVERS: readonly string[] = [
  'server.lock',
  UNFINISHED_RESTORE,
  `${UNFINISHED_RESTORE}.tmp`,
];
/** Not part of the restored data. */
const NOT_RESTORED = new Set<string>([MANIFEST_FILE, 'backup.lock', KEYS_BESIDE]);

interface RestoreOptions {
  config: Config;
  from: BackupFolders;
  manifest: BackupManifest;
  signal: AbortSignal;
  onProgress: (files: number) => void;
}

/** Restored folders that no service opens before `finish`. */
interface UnfinishedRestore {
  /** Lets a service use them. */
  finish(): Promise<void>;
  /** Leaves them unfinished; the next restore begins anew. */
  release(): void;
}

/** The folders that an unfinished restore had found empty. */
async function unfinishedFolders(dataFolder: string): Promise<string[]> {
  const file = join(dataFolder, UNFINISHED_RESTORE);
  return existsSync(file) ? (await readRegularFile(file)).toString().trimEnd().split('\n') : [];
}

/**
 * Throws `configuration_invalid` for a folder that is not empty, unless an unfinished restore filled it.
 * Returns what that one left.
 */
async function findLeftovers(
  folder: string,
  { folders, unfinished }: { folders: readonly string[]; unfinished: readonly string[] },
): Promise<string[]> {
  const names = (await namesIn(folder)) ?? [];
  const rest = names.filter(
    (name) => !LEFTOVERS.includes(name) && !folders.includes(join(folder, name)),
  );
  if (rest.length > 0 && !unfinished.includes(folder))
    throw backupError(
      `${folder} is not empty: it has ${rest[0]}. Nothing was restored. Move it away, or set DATA_DIR and KEYS_DIR to new folders.`,
    );
  return rest.map((name) => join(folder, name));
}

/** Copies the files in a folder, except those that are placed by options. */
async function copyFolder(
  from: string,
  to: string,
  {
    signal,
    onProgress,
    skip,
  }: Pick<RestoreOptions, 'signal' | 'onProgress'> & { skip: Set<string> },
): Promise<void> {
  let files = 0;
  async function copy(path: string): Promise<void> {
    signal.throwIfAborted();
    const source = join(from, path);
    if ((await lstat(source)).isDirectory()) {
      await mkdir(join(to, path), { mode: 0o700 });
      for (const name of (await namesIn(source)) ?? []) await copy(join(path, name));
      return;
    }
    const handle = await openToRead(source);
    const target = createWriteStream(join(to, path), { flags: 'wx', mode: 0o600, flush: true });
    await pipeline(handle.createReadStream(), target, { signal });
    onProgress((files += 1));
  }
  for (const name of (await namesIn(from)) ?? []) if (!skip.has(name)) await copy(name);
}

/** Places a file of keys; one that is there has to hold the same keys, and is not replaced. */
async function placeKeyFile(
  source: string,
  target: string | undefined,
  { option, idsOf }: { option: string; idsOf: (file: string) => readonly string[] },
): Promise<void> {
  if (!existsSync(source)) return;
  if (target === undefined) throw backupError(`Set ${option} to where its file is to be restored.`);
  if (!existsSync(target))
    return writeFileAtomically({ path: target, bytes: await readRegularFile(source) });
  const knownIds = new Set(idsOf(target));
  if (idsOf(source).every((id) => knownIds.has(id))) return;
  throw backupError(
    `${target} (${option}) exists, and lacks keys of the backup. It was not changed.`,
  );
}

const publicKeysIn = (file: string): string[] =>
  readSigningKeys(file).map((key) => String(key.export({ format: 'jwk' })['x']));

async function placeKeyFiles({ config, from }: RestoreOptions): Promise<void> {
  await placeKeyFile(
    join(from.keysFolder, BACKUP_FILES.masterKey),
    masterKeyFileOf(locateStorage(config)),
    { option: 'MASTER_KEY_FILE', idsOf: (file) => readMasterKeys(file).ids },
  );
  await placeKeyFile(
    join(from.keysFolder, BACKUP_FILES.signingKey),
    signingConfig(config, resolve(config.DATA_DIR)).keyFile,
    { option: 'LOG_SIGNING_KEY_FILE', idsOf: publicKeysIn },
  );
}

/** Throws `configuration_invalid` where the configuration is not that of the backup. */
function requireSameDeployment({ config, manifest }: RestoreOptions): void {
  if (manifest.origin !== config.LOG_ORIGIN)
    throw backupError(
      `The backup is of a log with LOG_ORIGIN=${manifest.origin}, and LOG_ORIGIN is ${config.LOG_ORIGIN}: set it to the same name, so that kept checkpoints still verify.`,
    );
  const isLogHere = 'folder' in locateStorage(config).log;
  if (isLogHere === (manifest.log !== null)) return;
  throw backupError(
    isLogHere
      ? 'The backup has no events, because its log is in a cluster: restore the cluster, and set EVENTSTOREDB_URL.'
      : 'The backup has the events of a log in a folder: restore it without EVENTSTOREDB_URL.',
  );
}

/**
 * Copies a backup into the configured folders, which have to be empty; no service opens them until the
 * result is finished. Begins anew where an earlier restore was interrupted. Throws
 * `configuration_invalid`, `data_folder_in_use`, and the reason of the signal.
 */
export async function restoreBackup(options: RestoreOptions): Promise<UnfinishedRestore> {
  const { config, from } = options;
  requireSameDeployment(options);
  const place = locateStorage(config);
  await using releasing = new AsyncDisposableStack();
  const markers: string[] = [];
  if (place.kind === 'embedded') {
    const { dataFolder } = place;
    const folders = [...new Set([dataFolder, place.keysFolder])];
    const unfinished = await unfinishedFolders(dataFolder);
    const leftovers: string[] = [];
    for (const folder of folders)
      leftovers.push(...(await findLeftovers(folder, { folders, unfinished })));
    createDataFolder(dataFolder);
    releasing.adopt(acquireServerLock(dataFolder), (lock) => lock.release());
    createDataFolder(place.keysFolder, keysFolderOption(place));
    for (const folder of folders) {
      const path = join(folder, UNFINISHED_RESTORE);
      await writeFileAtomically({ path, bytes: `${folders.join('\n')}\n` });
      // That of the data folder, which a repetition reads, is removed last.
      markers.unshift(path);
    }
    for (const path of leftovers) await rm(path, { recursive: true });
    await copyFolder(from.folder, place.dataFolder, { ...options, skip: NOT_RESTORED });
    const skip = new Set([...NOT_RESTORED, BACKUP_FILES.masterKey, BACKUP_FILES.signingKey]);
    await copyFolder(from.keysFolder, place.keysFolder, { ...options, skip });
  }
  await placeKeyFiles(options);
  const held = releasing.move();
  return {
    async finish() {
      for (const path of markers) await rm(path);
      await held.disposeAsync();
    },
    release: () => void held.disposeAsync(),
  };
}
