import type { KeyObject } from 'node:crypto';
import { resolve } from 'node:path';
import { startTreeCheckThread } from '../../../infra/files/treeCheckThread.ts';
import type { HandleContext } from '../../../shared/commandHandling/handle.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import { createDamagedStreams } from '../../../shared/eventlog/reading/damagedStreams.ts';
import { isTurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Logger } from '../../../shared/lib/logger.ts';
import type { JudgedTime } from '../../../shared/erasure/retention/judgeClock.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import { rebuildReadModels, type RebuildProgress } from '../../followers/projector/rebuild.ts';
import { republishLog, type RepublishOptions } from '../../followers/relay/republishLog.ts';
import {
  compareTree,
  type Comparison,
  type KeptCheckpoints,
} from '../../../shared/transparency/kept/compareTree.ts';
import { openOwnTree, type OwnTree } from '../../../shared/transparency/ownTree.ts';
import type { TileReader } from '../../../shared/transparency/tileStore.ts';
import {
  createTreeChecker,
  type ComparedPart,
  type TreeChecker,
} from '../../../shared/transparency/proof/treeChecker.ts';
import { createKeyring, type Keyring } from '../../../shared/eventlog/encryption/keyring.ts';
import {
  textsForRows,
  withOpenTexts,
  withTextsForRows,
} from '../../../shared/eventlog/encryption/protectedStore.ts';
import {
  verifyRows,
  type Verification,
  type VerificationResult,
} from '../../../shared/readModels/integrity/verifyRows.ts';
import { parseFreeLevel } from '../../../shared/storage/diskWatch.ts';
import { openOrCreateEventStore } from '../eventStore.ts';
import { operatorReadModels, type OperatorReadModels } from './readModels.ts';
import { appendWaitMs, locateStorage, type StorageLocation } from '../logLocation.ts';
import { openTiles } from '../replica/postgres.ts';
import {
  openTreeFiles,
  readConfiguredWitnesses,
  signingConfig,
  treeFolderOf,
  treeFilesOf,
} from '../features/prover.ts';
import { openOutsideEvidence, storedTrees } from '../features/storedTrees.ts';
import { openReplayPublisher } from '../features/publisher.ts';
import { judgeClock } from '../features/retention.ts';
import { readSigningKeys } from '../signingKeys.ts';
import { systemClock, systemIds } from '../system.ts';
import { openTextKeys, requireKeysOfLog, type TextKeys } from '../textKeys.ts';

export { writeCompleteFile } from '../../../infra/lib/completeFile.ts';
export { openKeptCheckpoints } from '../../../infra/witness/keptCheckpoints.ts';
/** Bundles are tar archives. */
export { readTar as readBundleFile } from '../../../infra/tar/readTar.ts';
export { writeTar as writeBundleFile } from '../../../infra/tar/writeTar.ts';

/** The stores of operator commands; all can be used beside a running server. */
export interface Operator
  extends
    HandleContext,
    Pick<OperatorReadModels, 'openReadModels' | 'purgeErasedTurns' | 'followedLog'> {
  /** How long the services that share the log may retry an append, in milliseconds. */
  appendWaitMs: number;
  /** The read models, which this process brings up to date on first use and closes itself. */
  readModels: () => Promise<ReadModels>;
  /** The time for erasures, which this machine's clock does not set ahead. */
  judge: () => Promise<JudgedTime>;
  /** The origin of the transparency log without the log's id, and the keys that sign it. */
  signing: () => { origin: string; keys: KeyObject[] };
  /** The transparency log, which a running service grows. */
  tiles: () => Promise<OwnTree>;
  /** The tree that was opened last, for an empty event log only: no signature covers which one that is. */
  lastTree: () => Promise<TileReader>;
  /** The tree of one origin, which is empty if there is none. */
  treeOf: (origin: string) => Promise<TileReader>;
  /** Compares the transparency log with the configured witnesses and kept checkpoints, and with others. */
  compareWithOutside: (
    signal: AbortSignal,
    others?: readonly KeptCheckpoints[],
  ) => Promise<Comparison>;
  /** Compares the log with the tree of an origin, or else with the one that was opened last. */
  compareTree: (part: ComparedPart, origin: string | undefined) => Promise<TreeChecker>;
  /**
   * Resolves with false if the signal aborts first; the next call continues from there. Throws
   * `storage_full`, after which the next call begins anew.
   */
  rebuild: (
    signal: AbortSignal,
    onProgress: (progress: RebuildProgress) => void,
  ) => Promise<boolean>;
  /** Verifies the log, and compares the rows of the read models with it; continues like a rebuild. */
  verifyRows: (
    options: Pick<Verification, 'signal' | 'verifyLog' | 'onProgress'> & {
      /** True to begin anew. */
      anew: boolean;
    },
  ) => Promise<VerificationResult>;
  /** Publishes the log again, to a separate topic; continues like a rebuild. */
  republish: (
    topic: string,
    options: Omit<RepublishOptions, 'log' | 'publisher'>,
  ) => Promise<boolean>;
  close: () => Promise<void>;
}

/** Opens the read models on first use. */
function openOnce(
  storage: OperatorReadModels,
  opened: AsyncDisposableStack,
): () => Promise<ReadModels> {
  let readModels: Promise<ReadModels> | undefined;
  // The caller that opened it has handled a failure to open.
  opened.defer(async () => (await readModels?.catch(() => undefined))?.close());
  return () => (readModels ??= storage.openReadModels());
}

/**
 * Opens the text keys on first use: commands that read the log as stored need none, and must not
 * create a key store beside a log that was copied without its keys.
 */
function openKeyringOnUse(
  place: StorageLocation,
  log: Pick<EventLog, 'readStream' | 'firstEvent'>,
  opened: AsyncDisposableStack,
): Keyring {
  let opening: Promise<TextKeys> | undefined;
  let keyring: Keyring | undefined;
  // The caller that opened it has handled a failure to open.
  opened.defer(async () => (await opening?.catch(() => undefined))?.store.close());
  async function open(): Promise<TextKeys> {
    await requireKeysOfLog(place, log);
    return openTextKeys(place);
  }
  const keys = async (): Promise<Keyring> =>
    (keyring ??= createKeyring({ ...(await (opening ??= open())), log }));
  return {
    issueKey: async () => (await keys()).issueKey(),
    find: async (ids) => (await keys()).find(ids),
    ensureKey: async (id) => (await keys()).ensureKey(id),
    examine: async (ids) => (await keys()).examine(ids),
    isErased: async (stream) => (await keys()).isErased(stream),
    noteLastEvent: (stream, type) => keyring?.noteLastEvent(stream, type),
    evict: (stream, ids) => keyring?.evict(stream, ids),
    evictAll: () => keyring?.evictAll(),
    beginErasure: async (stream, why) => (await keys()).beginErasure(stream, why),
    listErasures: async (limit) => (await keys()).listErasures(limit),
    endErasure: async (stream, ids) => (await keys()).endErasure(stream, ids),
  };
}

/**
 * The transparency log beside the read models. A database is opened on first use; files are compared
 * on a separate thread.
 */
function openTransparencyLog(
  place: StorageLocation,
  opened: AsyncDisposableStack,
): Pick<Operator, 'lastTree' | 'compareTree'> & {
  openTreeOf: () => Promise<(origin: string) => TileReader>;
} {
  if (place.kind === 'embedded') {
    const tree = openTreeFiles(place);
    return {
      lastTree: async () => tree,
      openTreeOf: async () => treeFilesOf(place),
      async compareTree(part, origin) {
        const folder = origin === undefined ? await tree.folder() : treeFolderOf(place, origin);
        return opened.adopt(await startTreeCheckThread({ ...part, folder }), (thread) =>
          thread.close(),
        );
      },
    };
  }
  const open = async () =>
    opened.adopt(await openTiles(place.databaseUrl), (tiles) => tiles.close());
  let reader: ReturnType<typeof open> | undefined;
  const lastTree = (): ReturnType<typeof open> => (reader ??= open());
  return {
    lastTree,
    openTreeOf: async () => (await lastTree()).treeOf,
    async compareTree(part, origin) {
      const all = await lastTree();
      return createTreeChecker({
        ...part,
        reader: origin === undefined ? all : all.treeOf(origin),
      });
    },
  };
}

/**
 * Opens the configured stores for operator commands, and creates them if they are missing. The signal
 * cancels waits.
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
  const keys = openKeyringOnUse(place, events, opening);
  const log = withTextsForRows(events, keys);
  const stored = operatorReadModels(
    place,
    { store: log, logger, signal: interrupted, stopFree: parseFreeLevel(config.DISK_STOP_FREE) },
    resolve(config.DATA_DIR),
  );
  // A projection would retry for as long as the keys are missing.
  const withKeys =
    <Opened>(open: () => Promise<Opened>) =>
    async (): Promise<Opened> => {
      await requireKeysOfLog(place, events);
      return open();
    };
  const storage = {
    ...stored,
    openReadModels: withKeys(stored.openReadModels),
    openRebuild: withKeys(stored.openRebuild),
  };
  const readModels = openOnce(storage, opening);
  const opened = opening.move();
  const { openTreeOf, ...transparencyLog } = openTransparencyLog(place, opened);
  const signing = signingConfig(config, resolve(config.DATA_DIR));
  let ownTree: OwnTree | undefined;
  // The command reports the damage itself.
  const source = { store: { ...events, keys }, damaged: createDamagedStreams(() => undefined) };
  return {
    ...source,
    judge: judgeClock(source, { now: systemClock.now, newest: events.head }).judge,
    clock: systemClock,
    ids: systemIds,
    appendWaitMs: appendWaitMs(place.log),
    readModels,
    ...storage,
    signing: () => ({ origin: signing.origin, keys: readSigningKeys(signing.keyFile) }),
    ...transparencyLog,
    tiles: async () => (ownTree ??= openOwnTree(events, storedTrees(signing, await openTreeOf()))),
    treeOf: async (origin) => (await openTreeOf())(origin),
    async compareWithOutside(signal, others = []) {
      const outside = openOutsideEvidence(config, await readConfiguredWitnesses(config));
      const all = { ...outside, kept: [...outside.kept, ...others] };
      return compareTree(log, storedTrees(signing, await openTreeOf()), all, signal);
    },
    rebuild: async (signal, onProgress) => {
      const rebuild = { log, store: await storage.openRebuild(), logger };
      return rebuildReadModels({ ...rebuild, signal, onProgress });
    },
    async verifyRows({ anew, ...options }) {
      await using resources = new AsyncDisposableStack();
      const live = resources.adopt(await storage.openLiveRows(), (rows) => rows.close());
      const copy = resources.adopt(await storage.openRowCopy(), (rows) => rows.close());
      if (anew) await copy.startOver();
      const openTexts = textsForRows(events, keys);
      const verification = { ...options, log, openTexts, live, copy, keys };
      const result = await verifyRows(verification).catch(async (error: unknown) => {
        if (isTurnlogError(error, 'storage_full')) await copy.discard();
        throw error;
      });
      if (result.complete) await copy.discard();
      return result;
    },
    async republish(topic, options) {
      await using resources = new AsyncDisposableStack();
      const publisher = resources.adopt(
        await openReplayPublisher(config, logger, topic, options.only),
        (kafka) => kafka.close(),
      );
      // Awaited here: the publisher is closed when this returns.
      return await republishLog({ ...options, log: withOpenTexts(events, keys), publisher });
    },
    close: () => opened.disposeAsync(),
  };
}
