import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createMasterKeyFile, readMasterKeys } from '../../infra/files/masterKeyFile.ts';
import { createDataFolder } from '../../infra/sqlite/dataFolder.ts';
import { hasProtectedTexts } from '../../infra/sqlite/eventStore/database.ts';
import { openSqliteKeyStore } from '../../infra/sqlite/keyStore/keyStore.ts';
import { keyStoreFile } from '../../infra/sqlite/keyStore/database.ts';
import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { MasterKeys } from '../../shared/eventlog/encryption/masterKeys.ts';
import type { Logger } from '../../shared/lib/logger.ts';
import type { KeyStore } from '../../shared/ports/keyStore.ts';
import { retryUntilStoreAvailable } from '../process/startup/retryUntilStoreAvailable.ts';
import type { ProcessPart } from '../process/processParts.ts';
import type { EmbeddedLocation, StorageLocation, ReplicaLocation } from './logLocation.ts';

/** Where the keys of texts are kept, and what wraps them. */
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

/**
 * A key store is made with an empty log only: where the log has boxes there were keys. It is made
 * before its master key, too, so it was there where that is. Errors: `configuration_invalid`,
 * `store_unavailable` (the log).
 */
function requireExistingKeys(place: EmbeddedLocation): void {
  const { keysFolder, masterKeyFile, log } = place;
  const file = keyStoreFile(keysFolder);
  if (existsSync(file)) return;
  const own = masterKeyFile === undefined ? defaultMasterKeyFile(place) : undefined;
  const hasOwn = own !== undefined && existsSync(own);
  if (!hasOwn && !('folder' in log && hasProtectedTexts(log.folder))) return;
  const gone = own === undefined || hasOwn ? file : `${file} and no ${own}`;
  throw configurationError(
    `The keys of all texts are gone: there is no ${gone}. Put back from their backups what is gone, or set KEYS_DIR to where it is. To go on without those texts: npm run cli -- text-keys begin-anew`,
  );
}

async function openFolderKeyStore(place: EmbeddedLocation): Promise<KeyStore> {
  requireExistingKeys(place);
  createDataFolder(place.keysFolder);
  return openSqliteKeyStore({ folder: place.keysFolder });
}

/**
 * To be asked by what opens texts and must not make anything: where keys would be made, there are
 * none. Errors: `configuration_invalid`.
 */
export function requireTextKeys(place: StorageLocation): void {
  if (place.kind === 'replica') return;
  const files = [
    keyStoreFile(place.keysFolder),
    place.masterKeyFile ?? defaultMasterKeyFile(place),
  ];
  const missing = files.find((file) => !existsSync(file));
  if (missing === undefined) return;
  throw configurationError(
    `The keys of texts are not here: there is no ${missing}. Put keys.db and its master key there, or name where they are with KEYS_DIR and MASTER_KEY_FILE.`,
  );
}

/** The key store of a place. Errors: `store_unavailable`, `configuration_invalid`. */
export const openKeyStore = async (place: StorageLocation): Promise<KeyStore> =>
  place.kind === 'embedded' ? openFolderKeyStore(place) : openKeyDatabase(place);

const MASTER_KEY_FILE_REQUIRED =
  'MASTER_KEY_FILE must be set where DATABASE_URL is: it names the file of the keys that wrap the keys of texts, the same for all processes. Make one: (umask 077; npm run --silent cli -- text-keys new-master > master.key)';

/** A folder without any key gets its master key; where there are keys, no other one opens them. */
async function locateMasterKeyFile(place: StorageLocation, store: KeyStore): Promise<string> {
  if (place.masterKeyFile !== undefined) return place.masterKeyFile;
  if (place.kind === 'replica') throw configurationError(MASTER_KEY_FILE_REQUIRED);
  const own = defaultMasterKeyFile(place);
  if (existsSync(own)) return own;
  if ((await store.list({ limit: 1 })).length > 0)
    throw configurationError(
      `The master key ${own} is gone, and without it the keys in keys.db open no text. Put it back from its backup, or set MASTER_KEY_FILE to where it is.`,
    );
  createMasterKeyFile(own);
  return own;
}

/**
 * Makes a key store, and its master key, for a log whose keys are lost for good. Answers with its
 * file. Errors: `configuration_invalid` where a key store is there, or in a database, or the master key
 * file can't be used; `store_unavailable`.
 */
export async function recreateKeyStore(place: StorageLocation): Promise<string> {
  if (place.kind === 'replica')
    throw configurationError(
      'With DATABASE_URL the keys are in its table turnlog.text_keys: put that back.',
    );
  const file = keyStoreFile(place.keysFolder);
  if (existsSync(file))
    throw configurationError(`There is a key store, ${file}: nothing was done.`);
  const master = place.masterKeyFile ?? defaultMasterKeyFile(place);
  // Before anything is made: a key store that is there lets the next start begin with it.
  if (place.masterKeyFile !== undefined || existsSync(master)) readMasterKeys(master);
  createDataFolder(place.keysFolder);
  await using opened = new AsyncDisposableStack();
  const store = opened.adopt(await openSqliteKeyStore({ folder: place.keysFolder }), (keys) =>
    keys.close(),
  );
  await locateMasterKeyFile(place, store);
  return file;
}

/**
 * Looks at one key: after a rotation there is but one master key, and before it seldom two. Errors:
 * `configuration_invalid`, `store_unavailable`.
 */
async function requireMasterKey(store: KeyStore, masterKeys: MasterKeys): Promise<void> {
  const [kept] = await store.list({ limit: 1 });
  if (!kept || masterKeys.ids.includes(kept.master_key_id)) return;
  throw configurationError(
    `The master key file is not the one of this key store: keys are wrapped by the master key ${kept.master_key_id}, and the file has ${masterKeys.ids.join(', ')}. Add that one to it as a further line.`,
  );
}

/**
 * Opens the key store of a place with its master keys, which an empty data folder gets at its first
 * start. Does not wait for a database: `textKeysPart` looks at its keys.
 * Errors: `store_unavailable`, `configuration_invalid` where the master key file can't be used, is
 * gone or is another one's.
 */
export async function openTextKeys(place: StorageLocation): Promise<TextKeys> {
  await using opening = new AsyncDisposableStack();
  const store = opening.adopt(await openKeyStore(place), (keys) => keys.close());
  const masterKeys = readMasterKeys(await locateMasterKeyFile(place, store));
  if (place.kind === 'embedded') await requireMasterKey(store, masterKeys);
  opening.move();
  return { store, masterKeys };
}

/** A part that keeps the process from serving with master keys that are not those of its database. */
export const textKeysPart = ({ store, masterKeys }: TextKeys, logger: Logger): ProcessPart => ({
  prepare: (signal) =>
    retryUntilStoreAvailable(() => requireMasterKey(store, masterKeys), logger, signal),
});
