import type { KeyObject } from 'node:crypto';
import { resolve } from 'node:path';
import { startTreeCheckThread } from '../../../infra/files/treeCheckThread.ts';
import type { HandleContext } from '../../../shared/commandHandling/handle.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import { createDamagedStreams } from '../../../shared/eventlog/reading/damagedStreams.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import { rebuildReadModels, type RebuildProgress } from '../../followers/projector/rebuild.ts';
import { republishLog, type RepublishOptions } from '../../followers/relay/republishLog.ts';
import type { TileReader } from '../../../shared/transparency/tileStore.ts';
import {
  createTreeChecker,
  type ComparedPart,
  type TreeChecker,
} from '../../../shared/transparency/proof/treeChecker.ts';
import { createKeyring, type Keyring } from '../../../shared/eventlog/encryption/keyring.ts';
import {
  withOpenTexts,
  withTextsForRows,
} from '../../../shared/eventlog/encryption/protectedStore.ts';
import { openOrCreateEventStore } from '../eventStore.ts';
import { operatorReadModels, type OperatorReadModels } from './readModels.ts';
import { locateStorage, type StorageLocation } from '../logLocation.ts';
import { openTiles } from '../replica/postgres.ts';
import { openTreeFiles, signingConfig } from '../features/prover.ts';
import { openReplayPublisher } from '../features/publisher.ts';
import { readSigningKeys } from '../signingKeys.ts';
import { systemClock, systemIds } from '../system.ts';
import { openTextKeys, type TextKeys } from '../textKeys.ts';

/** Bundles are tar archives. */
export { readTar as readBundleFile } from '../../../infra/tar/readTar.ts';
export { writeTar as writeBundleFile } from '../../../infra/tar/writeTar.ts';

/** What operator commands work with; all of it may be used beside a running server. */
export interface Operator extends HandleContext {
  /**
   * The read models, brought up to date by this process: no server need be running.
   * Errors: the signal's reason.
   */
  readModels: () => Promise<ReadModels>;
  /**
   * The same, brought up to date anew, also with what this process has written; to be closed by the
   * caller. Errors: the signal's reason.
   */
  openReadModels: () => Promise<ReadModels>;
  /**
   * Resolves when nothing of what was erased is left in the files of the index of words, where this
   * process can see to it. Errors: `store_unavailable`, the signal's reason.
   */
  purgeErasedWords: () => Promise<void>;
  /** The id of the log that the read models were built from; undefined where there are none. */
  followedLog: () => Promise<string | undefined>;
  /**
   * What stands before the log's id in the origin of its transparency log, and the keys that sign it.
   * Errors: `configuration_invalid` where there are none.
   */
  signing: () => { origin: string; keys: KeyObject[] };
  /** The transparency log, as some process grows it. */
  tiles: () => Promise<TileReader>;
  /** Compares the log with it. Errors: those of `createTreeChecker`. */
  compareTree: (part: ComparedPart) => Promise<TreeChecker>;
  /** Resolves false when the signal aborted first; the next call goes on from there. */
  rebuild: (
    signal: AbortSignal,
    onProgress: (progress: RebuildProgress) => void,
  ) => Promise<boolean>;
  /**
   * Publishes the log once more, to a topic of its own; goes on like a rebuild. Errors: those of
   * `replay`.
   */
  republish: (topic: string, what: Omit<RepublishOptions, 'log' | 'publisher'>) => Promise<boolean>;
  close: () => Promise<void>;
}

/** Opened when they are first asked for. */
function openOnce(
  storage: OperatorReadModels,
  opened: AsyncDisposableStack,
): () => Promise<ReadModels> {
  let readModels: Promise<ReadModels> | undefined;
  // Whoever asked for them knows why they could not be opened.
  opened.defer(async () => (await readModels?.catch(() => undefined))?.close());
  return () => (readModels ??= storage.openReadModels());
}

/**
 * The keys of texts, opened with their first use: what reads the log as it is stored needs none, and
 * makes no key store beside a log that was copied without its own.
 */
function openKeyringOnUse(place: StorageLocation, opened: AsyncDisposableStack): Keyring {
  let opening: Promise<TextKeys> | undefined;
  let keyring: Keyring | undefined;
  // Whoever asked for them knows why they could not be opened.
  opened.defer(async () => (await opening?.catch(() => undefined))?.store.close());
  const keys = async (): Promise<Keyring> =>
    (keyring ??= createKeyring(await (opening ??= openTextKeys(place))));
  return {
    issueKey: async () => (await keys()).issueKey(),
    find: async (ids) => (await keys()).find(ids),
    ensureKey: async (id) => (await keys()).ensureKey(id),
    evict: (ids) => keyring?.evict(ids),
    beginErasure: async (stream, why) => (await keys()).beginErasure(stream, why),
    listErasures: async (limit) => (await keys()).listErasures(limit),
    endErasure: async (stream, ids) => (await keys()).endErasure(stream, ids),
  };
}

/**
 * The transparency log beside the read models; a database is asked with the first use. One in files
 * is compared on a thread of its own.
 */
function openTransparencyLog(
  place: StorageLocation,
  opened: AsyncDisposableStack,
): Pick<Operator, 'tiles' | 'compareTree'> {
  if (place.kind === 'embedded') {
    const one = openTreeFiles(place);
    return {
      tiles: async () => one,
      compareTree: async (part) =>
        opened.adopt(
          await startTreeCheckThread({ ...part, folder: await one.folder() }),
          (thread) => thread.close(),
        ),
    };
  }
  const open = async (): Promise<TileReader> =>
    opened.adopt(await openTiles(place.databaseUrl), (tiles) => tiles.close());
  let reader: Promise<TileReader> | undefined;
  const tiles = (): Promise<TileReader> => (reader ??= open());
  return {
    tiles,
    compareTree: async (part) => createTreeChecker({ ...part, reader: await tiles() }),
  };
}

/**
 * Opens the configured store for operator commands, and makes it where it is not there; the signal
 * ends their waits.
 * Errors: `store_unavailable`, `configuration_invalid`.
 */
export async function openOperator(
  config: Config,
  logger: Logger,
  interrupted = new AbortController().signal,
): Promise<Operator> {
  await using opening = new AsyncDisposableStack();
  const place = locateStorage(config);
  const events = opening.adopt(await openOrCreateEventStore(place.log, logger), (log) =>
    log.close(),
  );
  const keys = openKeyringOnUse(place, opening);
  const log = withTextsForRows(events, keys);
  const storage = operatorReadModels(place, { store: log, logger, signal: interrupted });
  const readModels = openOnce(storage, opening);
  const opened = opening.move();
  return {
    store: { ...events, keys },
    // The command itself tells whom it concerns.
    damaged: createDamagedStreams(() => undefined),
    clock: systemClock,
    ids: systemIds,
    readModels,
    openReadModels: storage.openReadModels,
    purgeErasedWords: storage.purgeErasedWords,
    followedLog: storage.followedLog,
    signing() {
      const { origin, keyFile } = signingConfig(config, resolve(config.DATA_DIR));
      return { origin, keys: readSigningKeys(keyFile) };
    },
    ...openTransparencyLog(place, opened),
    rebuild: async (signal, onProgress) => {
      const rebuild = { log, store: await storage.openRebuild(), logger };
      return rebuildReadModels({ ...rebuild, signal, onProgress });
    },
    async republish(topic, what) {
      await using used = new AsyncDisposableStack();
      const publisher = used.adopt(
        await openReplayPublisher(config, logger, topic, what.only),
        (kafka) => kafka.close(),
      );
      // Awaited here: the publisher is closed when this returns.
      return await republishLog({ ...what, log: withOpenTexts(events, keys), publisher });
    },
    close: () => opened.disposeAsync(),
  };
}
