import { join, resolve } from 'node:path';
import type { Config } from '../../shared/lib/config/config.ts';
import { sha256 } from '../../shared/eventlog/hashChain.ts';

/** Where a log is: in a data folder, or in the EventStoreDB cluster of a connection string. */
export type LogLocation = { folder: string } | { cluster: string };

/** True for a connection string; anything else names a data folder. */
export const isCluster = (name: string): boolean => /^esdb(\+discover)?:/.test(name);

/** The location of a log by its name: a connection string, or a data folder. */
export const locateLog = (name: string): LogLocation =>
  isCluster(name) ? { cluster: name } : { folder: resolve(name) };

/**
 * Read models in the data folder of one process, whose log may be elsewhere. Plain data, so that it
 * can be handed to a thread.
 */
export interface EmbeddedLocation {
  kind: 'embedded';
  /** Absolute. */
  dataFolder: string;
  log: LogLocation;
  /** Of the key store, absolute. */
  keysFolder: string;
  /** Of MASTER_KEY_FILE, absolute; undefined for the one that is made beside the key store. */
  masterKeyFile: string | undefined;
}

/** What any number of processes share. */
export interface ReplicaLocation {
  kind: 'replica';
  databaseUrl: string;
  log: LogLocation;
  masterKeyFile: string | undefined;
}

/** Where a service keeps its log and its read models. */
export type StorageLocation = EmbeddedLocation | ReplicaLocation;

/** The place that the configuration names. */
export function locateStorage(config: Config): StorageLocation {
  const { DATA_DIR, DATABASE_URL, EVENTSTOREDB_URL, KEYS_DIR, MASTER_KEY_FILE } = config;
  const dataFolder = resolve(DATA_DIR);
  const keysFolder = KEYS_DIR === undefined ? dataFolder : resolve(KEYS_DIR);
  const masterKeyFile = MASTER_KEY_FILE === undefined ? undefined : resolve(MASTER_KEY_FILE);
  const log =
    EVENTSTOREDB_URL === undefined ? { folder: dataFolder } : { cluster: EVENTSTOREDB_URL };
  return DATABASE_URL === undefined
    ? { kind: 'embedded', dataFolder, log, keysFolder, masterKeyFile }
    : { kind: 'replica', databaseUrl: DATABASE_URL, log, masterKeyFile };
}

/**
 * The folder of the read models of this log. A checkpoint means nothing in another log, so those of
 * a cluster have a folder named by its hosts.
 */
export function readModelsFolder({
  dataFolder,
  log,
}: Pick<EmbeddedLocation, 'dataFolder' | 'log'>): string {
  if ('folder' in log) return dataFolder;
  const hosts = /^[^/]*\/\/(?:[^@/]*@)?([^/?]*)/.exec(log.cluster)?.[1] ?? '';
  return join(dataFolder, `eventstoredb-${sha256(hosts).slice(0, 12)}`);
}
