import { existsSync, realpathSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createMasterKeyFile,
  readMasterKeys,
  writeNextMasterKeyFile,
} from '../../infra/files/masterKeyFile.ts';
import { createDataFolder } from '../../infra/sqlite/dataFolder.ts';
import { hasProtectedTexts } from '../../infra/sqlite/eventStore/database.ts';
import { openSqliteKeyStore } from '../../infra/sqlite/keyStore/keyStore.ts';
import { keyStoreFile, replaceKeyStore } from '../../infra/sqlite/keyStore/database.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import { importErasures } from '../../shared/eventlog/encryption/importKeys.ts';
import type { MasterKeys } from '../../shared/eventlog/encryption/masterKeys.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { EventLog } from '../../shared/ports/eventStore.ts';
import type { KeySource, KeyStore } from '../../shared/ports/keyStore.ts';
import { instanceIdFile } from './embedded/instance.ts';
import { retryUntilStoreAvailable } from '../process/startup/retryUntilStoreAvailable.ts';
import type { ProcessPart } from '../process/processParts.ts';
import {
  keysFolderOption,
  locateReadModels,
  type EmbeddedLocation,
  type StorageLocation,
  type ReplicaLocation,
} from './logLocation.ts';
import { requireUsableFolder } from './operator/backup/unfinishedRestore.ts';

/** The store of the text keys, and the master keys that wrap them. */
export interface TextKeys {
  store: KeyStore;
  masterKeys: MasterKeys;
}

const configurationError = (message: string): TurnlogError =>
  new TurnlogError('configuration_invalid', message);

async function openKeyDatabase({ databaseUrl }: ReplicaLocation): Promise<KeyStore> {
  const { openPostgresKeyStore } = await import('../../infra/postgres/keyStore.ts');
  return openPostgresKeyStore({ databaseUrl });
}

const defaultMasterKeyFile = ({ keysFolder }: EmbeddedLocation): string =>
  join(keysFolder, 'master.key');

const BEGIN_ANEW = 'To continue without those texts: npm run cli -- text-keys begin-anew';

/** The master key file of a location; undefined if none is configured for a database of keys. */
export const masterKeyFileOf = (place: StorageLocation): string | undefined =>
  place.masterKeyFile ?? (place.kind === 'embedded' ? defaultMasterKeyFile(place) : undefined);

const MASTER_KEY_FILE_REQUIRED =
  'MASTER_KEY_FILE must be set if DATABASE_URL is: it names the file of the keys that wrap the keys of texts, the same for all processes. Create one: npm run cli -- text-keys new-master --out master.key';

/** The same file. Throws `configuration_invalid` if none is configured. */
export function requireMasterKeyFile(place: StorageLocation): string {
  const file = masterKeyFileOf(place);
  if (file === undefined) throw configurationError(MASTER_KEY_FILE_REQUIRED);
  return file;
}

/**
 * True if the texts of a log were encrypted with keys of this location. Other servers may have written
 * the texts of a cluster, so only the location's own server counts there: it has read models of it.
 */
const hadKeys = (place: EmbeddedLocation): boolean =>
  'folder' in place.log
    ? hasProtectedTexts(place.log.folder)
    : existsSync(instanceIdFile(place)) && existsSync(locateReadModels(place));

/**
 * Throws `configuration_invalid` if the key store is lost: there were keys, or the master key exists,
 * which is created after the key store.
 */
function requireExistingKeys(place: EmbeddedLocation): void {
  const { keysFolder, masterKeyFile } = place;
  const file = keyStoreFile(keysFolder);
  if (existsSync(file)) return;
  const defaultFile = masterKeyFile === undefined ? defaultMasterKeyFile(place) : undefined;
  const hasDefaultFile = defaultFile !== undefined && existsSync(defaultFile);
  if (!hasDefaultFile && !hadKeys(place)) return;
  const missing =
    defaultFile === undefined || hasDefaultFile ? file : `${file} and no ${defaultFile}`;
  throw configurationError(
    `The keys of all texts are gone: there is no ${missing}. Restore it from a backup, or set KEYS_DIR to its folder. ${BEGIN_ANEW}`,
  );
}

async function openFolderKeyStore(place: EmbeddedLocation): Promise<KeyStore> {
  requireExistingKeys(place);
  createDataFolder(place.keysFolder, keysFolderOption(place));
  return openSqliteKeyStore({ folder: place.keysFolder });
}

/** Throws `configuration_invalid` if the keys are missing, for callers that must not create any. */
export function requireTextKeys(place: StorageLocation): void {
  if (place.kind === 'replica') return;
  const files = [
    keyStoreFile(place.keysFolder),
    place.masterKeyFile ?? defaultMasterKeyFile(place),
  ];
  const missing = files.find((file) => !existsSync(file));
  if (missing === undefined) return;
  throw configurationError(
    `The keys of texts are not here: there is no ${missing}. Put keys.db and its master key there, or set KEYS_DIR and MASTER_KEY_FILE to their location.`,
  );
}

/**
 * Throws `configuration_invalid` if the log has events and its keys are missing, for operator commands:
 * only the first start of a server creates keys for a cluster that other servers use.
 */
export async function requireKeysOfLog(
  place: StorageLocation,
  log: Pick<EventLog, 'firstEvent'>,
): Promise<void> {
  if (place.kind === 'replica' || 'folder' in place.log) return;
  if (existsSync(keyStoreFile(place.keysFolder))) return;
  if (await log.firstEvent()) requireTextKeys(place);
}

/** Opens the key store of a location. */
export const openKeyStore = async (place: StorageLocation): Promise<KeyStore> =>
  place.kind === 'embedded' ? openFolderKeyStore(place) : openKeyDatabase(place);

/** Creates the master key of a folder without text keys; existing keys need their own master key. */
async function locateMasterKeyFile(place: StorageLocation, store: KeyStore): Promise<string> {
  const file = requireMasterKeyFile(place);
  if (place.masterKeyFile !== undefined || existsSync(file)) return file;
  if ((await store.list({ limit: 1 })).length > 0)
    throw configurationError(
      `The master key ${file} is gone, and without it the keys in keys.db open no text. Restore it from a backup, or set MASTER_KEY_FILE to its location. ${BEGIN_ANEW}`,
    );
  createMasterKeyFile(file);
  return file;
}

/** Throws `configuration_invalid` unless the master keys of all keys of a location are lost. */
async function requireUnusableKeys(place: EmbeddedLocation, ids: readonly string[]): Promise<void> {
  const used = await listUsedMasterKeys(place);
  if (used.length === 0 || used.some((id) => ids.includes(id)))
    throw configurationError(
      `The key store ${keyStoreFile(place.keysFolder)} exists and can be used: nothing was done.`,
    );
}

/**
 * Replaces the key store of a folder by an empty one that continues its erasures; returns the folder that it
 * was set aside in. A failure before that leaves the key store as it was.
 */
async function renewKeyStore(folder: string): Promise<string> {
  await using opened = new AsyncDisposableStack();
  const successor = await mkdtemp(join(folder, 'keys-begun-'));
  opened.defer(() => rm(successor, { recursive: true }));
  {
    await using stores = new AsyncDisposableStack();
    const open = async (from: string): Promise<KeyStore & KeySource> =>
      stores.adopt(await openSqliteKeyStore({ folder: from }), (keys) => keys.close());
    const [from, to] = [await open(folder), await open(successor)];
    const { signal } = new AbortController();
    await importErasures({ from, to, signal, onProgress: () => undefined });
  }
  return replaceKeyStore(folder, successor);
}

/** The key store that replaces a lost one. */
interface RecreatedKeyStore {
  key_store: string;
  /** The folder of the key store whose master key is lost; null if the key store was lost. */
  set_aside: string | null;
}

/**
 * Creates a key store, and its master key, for a log whose keys or master key are lost for good. Keys whose
 * master key is lost are set aside; the new store continues their erasures. Rejects with
 * `configuration_invalid` if a key store can be used, or belongs in a database, or the master key file can't
 * be used.
 */
export async function recreateKeyStore(place: StorageLocation): Promise<RecreatedKeyStore> {
  if (place.kind === 'replica')
    throw configurationError(
      'With DATABASE_URL the keys are in its table turnlog.text_keys: restore that table, and the file of MASTER_KEY_FILE.',
    );
  const { keysFolder: folder } = place;
  const key_store = keyStoreFile(folder);
  const master = requireMasterKeyFile(place);
  // Check first: once the key store exists, the next start would use it.
  const hasMaster = place.masterKeyFile !== undefined || existsSync(master);
  const ids = hasMaster ? readMasterKeys(master).ids : [];
  const isLost = !existsSync(key_store);
  if (!isLost) await requireUnusableKeys(place, ids);
  createDataFolder(folder, keysFolderOption(place));
  const set_aside = isLost ? null : await renewKeyStore(folder);
  const store = await openSqliteKeyStore({ folder });
  try {
    await locateMasterKeyFile(place, store);
  } finally {
    await store.close();
  }
  return { key_store, set_aside };
}

/** The master keys that wrap keys of a store. */
const listMasterKeys = async (store: KeyStore): Promise<string[]> =>
  [...(await store.count()).keys()].filter((id) => id !== 'destroyed');

/** The master keys that wrap keys of a location. Creates nothing. */
async function listUsedMasterKeys(place: StorageLocation): Promise<string[]> {
  if (place.kind === 'embedded' && !existsSync(keyStoreFile(place.keysFolder))) return [];
  const store = await openKeyStore(place);
  try {
    return await listMasterKeys(store);
  } finally {
    await store.close();
  }
}

/** A master key file that replaces the one of a location. */
interface NextMasterKeyFile {
  /** The file that a location uses now; it may be missing. */
  current: string | undefined;
  master_key_id: string;
  earlier_master_key_ids: readonly string[];
}

/**
 * Writes a new file with a new master key and those of the current file; `last` puts the new one after
 * them, so that it wraps nothing yet. Throws `configuration_invalid` if the file exists, or would lack
 * a master key that keys are wrapped by.
 */
export async function createNextMasterKeyFile(
  place: StorageLocation,
  file: string,
  { last }: { last: boolean },
): Promise<NextMasterKeyFile> {
  const current = masterKeyFileOf(place);
  const source = current !== undefined && existsSync(current) ? current : undefined;
  const earlier: readonly string[] = source === undefined ? [] : readMasterKeys(source).ids;
  const missing = (await listUsedMasterKeys(place)).find((id) => !earlier.includes(id));
  if (missing !== undefined) {
    const otherwise =
      place.kind === 'embedded'
        ? ' If it is lost for good, run text-keys begin-anew without MASTER_KEY_FILE.'
        : '';
    throw configurationError(
      `Nothing was written: keys of texts are wrapped by the master key ${missing}, which ${current ?? 'no configured file'} does not have. Set MASTER_KEY_FILE to the file that has it.${otherwise}`,
    );
  }
  const master_key_id = writeNextMasterKeyFile({ file, source, last });
  return { current, master_key_id, earlier_master_key_ids: earlier };
}

/** Checks one key: between rotations, all keys have the same master key. */
async function requireMasterKey(store: KeyStore, masterKeys: MasterKeys): Promise<void> {
  const [key] = await store.list({ limit: 1 });
  if (!key || masterKeys.ids.includes(key.master_key_id)) return;
  throw configurationError(
    `The master key file is not the one of this key store: keys are wrapped by the master key ${key.master_key_id}, and the file has ${masterKeys.ids.join(', ')}. Add the missing one to the file, on a line of its own.`,
  );
}

/**
 * Opens the key store of a location with its master keys; an empty data folder gets a master key.
 * Does not wait for a database: `textKeysPart` checks its keys later.
 */
export async function openTextKeys(place: StorageLocation): Promise<TextKeys> {
  await using opening = new AsyncDisposableStack();
  const store = opening.adopt(await openKeyStore(place), (keys) => keys.close());
  const masterKeys = readMasterKeys(await locateMasterKeyFile(place, store));
  if (place.kind === 'embedded') await requireMasterKey(store, masterKeys);
  opening.move();
  return { store, masterKeys };
}

/** A part that prevents serving with master keys that don't match the database. */
export const textKeysPart = ({ store, masterKeys }: TextKeys, logger: Logger): ProcessPart => ({
  prepare: (signal) =>
    retryUntilStoreAvailable(() => requireMasterKey(store, masterKeys), logger, signal),
});

interface KeyImport extends AsyncDisposable {
  from: KeySource;
  to: KeyStore;
}

/**
 * Opens the key store of a folder and the one of a location, which its keys are imported into. Throws
 * `configuration_invalid` if one is missing, both are the same, or the location's master key file lacks a
 * master key of either.
 */
export async function openKeyImport(place: StorageLocation, folder: string): Promise<KeyImport> {
  requireUsableFolder(folder);
  const file = keyStoreFile(folder);
  if (!existsSync(file)) throw configurationError(`There is no key store ${file}.`);
  requireTextKeys(place);
  if (place.kind === 'embedded' && realpathSync(place.keysFolder) === realpathSync(folder))
    throw configurationError(
      `${file} is the configured key store itself. Set DATABASE_URL or KEYS_DIR to the store that its keys are imported into.`,
    );
  await using opening = new AsyncDisposableStack();
  const { store: to, masterKeys } = await openTextKeys(place);
  opening.defer(() => to.close());
  await requireMasterKey(to, masterKeys);
  const from = opening.adopt(await openSqliteKeyStore({ folder }), (keys) => keys.close());
  const missing = (await listMasterKeys(from)).find((id) => !masterKeys.ids.includes(id));
  if (missing !== undefined)
    throw configurationError(
      `Nothing was imported: keys in ${file} are wrapped by the master key ${missing}, which ${masterKeyFileOf(place)} does not have. Add it to the file, on a line of its own.`,
    );
  const opened = opening.move();
  return { from, to, [Symbol.asyncDispose]: () => opened.disposeAsync() };
}
