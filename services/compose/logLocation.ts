import { join, resolve } from 'node:path';
import type { Config } from '../../shared/lib/config/config.ts';
import { sha256 } from '../../shared/eventlog/hashChain.ts';

/**
 * The location of a log: a data folder, or the EventStoreDB cluster of a connection string, with the
 * time limit of an append or a read in milliseconds.
 */
export type LogLocation = { folder: string } | { cluster: string; waitMs?: number };

/** How long an append to the log may be retried, in milliseconds; in a data folder, none is. */
export const appendWaitMs = (log: LogLocation): number => ('cluster' in log && log.waitMs) || 0;

/** True for a connection string; anything else names a data folder. */
export const isCluster = (name: string): boolean => /^(esdb|kurrentdb)(\+discover)?:/.test(name);

/** The location of a log by its name: a connection string, or a data folder. */
export const locateLog = (name: string): LogLocation =>
  isCluster(name) ? { cluster: name } : { folder: resolve(name) };

/**
 * Read models in the data folder of one process; the log may be elsewhere. Plain data, so that it can
 * be passed to a thread.
 */
export interface EmbeddedLocation {
  kind: 'embedded';
  /** Absolute. */
  dataFolder: string;
  log: LogLocation;
  /** The absolute folder of the key store. */
  keysFolder: string;
  /** The absolute path of MASTER_KEY_FILE; undefined for the default file beside the key store. */
  masterKeyFile: string | undefined;
}

/** The option that names the folder of the key store. */
export const keysFolderOption = ({
  dataFolder,
  keysFolder,
}: EmbeddedLocation): 'DATA_DIR' | 'KEYS_DIR' =>
  keysFolder === dataFolder ? 'DATA_DIR' : 'KEYS_DIR';

/** Storage that any number of processes share. */
export interface ReplicaLocation {
  kind: 'replica';
  databaseUrl: string;
  log: LogLocation;
  masterKeyFile: string | undefined;
}

/** The locations of a service's log and read models. */
export type StorageLocation = EmbeddedLocation | ReplicaLocation;

/** The storage that the configuration names. */
export function locateStorage(config: Config): StorageLocation {
  const { DATA_DIR, DATABASE_URL, EVENTSTOREDB_URL, KEYS_DIR, MASTER_KEY_FILE, STORE_WAIT_MS } =
    config;
  const dataFolder = resolve(DATA_DIR);
  const keysFolder = KEYS_DIR === undefined ? dataFolder : resolve(KEYS_DIR);
  const masterKeyFile = MASTER_KEY_FILE === undefined ? undefined : resolve(MASTER_KEY_FILE);
  const log =
    EVENTSTOREDB_URL === undefined
      ? { folder: dataFolder }
      : { cluster: EVENTSTOREDB_URL, waitMs: STORE_WAIT_MS };
  return DATABASE_URL === undefined
    ? { kind: 'embedded', dataFolder, log, keysFolder, masterKeyFile }
    : { kind: 'replica', databaseUrl: DATABASE_URL, log, masterKeyFile };
}

/**
 * The folder of the read models of this log. Checkpoints are only valid in their own log, so each
 * cluster has a folder named by a hash of its hosts.
 */
export function locateReadModels({
  dataFolder,
  log,
}: Pick<EmbeddedLocation, 'dataFolder' | 'log'>): string {
  if ('folder' in log) return dataFolder;
  const hosts = /^[^/]*\/\/(?:[^@/]*@)?([^/?]*)/.exec(log.cluster)?.[1] ?? '';
  return join(dataFolder, `eventstoredb-${sha256(hosts).slice(0, 12)}`);
}
