import { permanentLeadership } from '../../../shared/lib/concurrency/leaderTask.ts';
import { existsSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import type { KeyObject } from 'node:crypto';
import { join, resolve } from 'node:path';
import { once } from 'node:events';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import {
  openFileTree,
  openOneFileTree,
  type CheckedTree,
} from '../../../infra/files/tileReader.ts';
import { openFileTileTrees } from '../../../infra/files/tileStore.ts';
import { createHttpWitness } from '../../../infra/witness/httpWitness.ts';
import { readWitnessesFile, type WitnessesFile } from '../../../infra/witness/witnessesFile.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import type { Keyring } from '../../../shared/eventlog/encryption/keyring.ts';
import type { ProtectedStore } from '../../../shared/eventlog/encryption/protectedStore.ts';
import { withGapCheck } from '../../../shared/eventlog/following/gapCheck.ts';
import { createDamagedStreams } from '../../../shared/eventlog/reading/damagedStreams.ts';
import { streamKind } from '../../../shared/eventlog/streams.ts';
import type { EventLog } from '../../../shared/ports/eventStore.ts';
import { declareTree } from '../../../shared/restoredLogs/declareTree.ts';
import { compareTree } from '../../../shared/transparency/kept/compareTree.ts';
import {
  createLeafComparison,
  type LeafComparison,
} from '../../../shared/transparency/leaves/leafComparison.ts';
import {
  openOwnTree,
  type OwnTree,
  type StoredTrees,
} from '../../../shared/transparency/ownTree.ts';
import type { ActiveTrees, TileReader } from '../../../shared/transparency/tileStore.ts';
import type {
  ProverReport,
  TransparencyFindings,
  TransparencyLogHealth,
} from '../../../shared/health/health.ts';
import { createProverHealth, type ProverHealth } from '../../followers/prover/health.ts';
import type { Prover, ProverLogger } from '../../followers/prover/prover.ts';
import type { WitnessesReport } from '../../followers/prover/witnesses.ts';
import { runProver } from '../../followers/prover/run.ts';
import { sharedTransparencyPart } from '../../process/health/transparency.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import { createTreeCheck, type TreeCheck } from '../../process/startup/treeCheck.ts';
import { openEventStore } from '../eventStore.ts';
import type { Opening } from '../opening.ts';
import type { EmbeddedLocation } from '../logLocation.ts';
import { makeSigningKey, readSigningKeys } from '../signingKeys.ts';
import { systemClock, systemIds } from '../system.ts';
import { openOutsideEvidence, storedTrees } from './storedTrees.ts';

/** The name and keys of a prover of checkpoints. Plain data, so that it can be passed to a thread. */
interface SigningConfig {
  origin: string;
  /** The absolute path of the key file. */
  keyFile: string;
  /** True if the file is created for the first tree of a log. */
  createsKey: boolean;
  /** Undefined if no witnesses are configured. */
  witnesses: WitnessesFile | undefined;
}

/** The data that starts the thread of an embedded service. */
export interface ThreadData {
  place: EmbeddedLocation;
  signing: SigningConfig;
  /** DISK_STOP_FREE */
  stopFree: string;
  /** Receives the reports of the prover, and sends one message when it may begin. */
  reports: MessagePort;
}

const KEY_FILE = 'log-signing-key.pem';

/** How long the start with a new log waits until the log declares its tree. */
const SETTLE_MS = 2_000;

/** The folder of the trees of an embedded service. */
const treesFolder = ({ dataFolder }: Pick<EmbeddedLocation, 'dataFolder'>): string =>
  join(dataFolder, 'tlog');

export const readConfiguredWitnesses = async ({ LOG_WITNESSES_FILE: file }: Config) =>
  file === undefined ? undefined : readWitnessesFile(resolve(file));

/** Reads the tree of one origin in a data folder. */
export const treeFilesOf =
  (place: Pick<EmbeddedLocation, 'dataFolder'>) =>
  (origin: string): TileReader =>
    openFileTree(treesFolder(place), origin);

/** The folder of the tree of one origin in a data folder. */
export const treeFolderOf = (place: Pick<EmbeddedLocation, 'dataFolder'>, origin: string): string =>
  join(treesFolder(place), origin);

/** Opens one tree of a data folder, for a command that must not switch to another one. */
export const openTreeFiles = (place: Pick<EmbeddedLocation, 'dataFolder'>): CheckedTree =>
  openOneFileTree(treesFolder(place));

/** The name and keys of a process with a data folder. */
export const signingConfig = (
  { LOG_ORIGIN, LOG_SIGNING_KEY_FILE }: Config,
  dataFolder: string,
): Omit<SigningConfig, 'witnesses'> => ({
  origin: LOG_ORIGIN,
  keyFile:
    LOG_SIGNING_KEY_FILE === undefined ? join(dataFolder, KEY_FILE) : resolve(LOG_SIGNING_KEY_FILE),
  createsKey: LOG_SIGNING_KEY_FILE === undefined,
});

async function replicaSigningConfig(config: Config): Promise<SigningConfig> {
  const { LOG_ORIGIN, LOG_SIGNING_KEY_FILE } = config;
  if (LOG_SIGNING_KEY_FILE === undefined)
    throw new TurnlogError(
      'configuration_invalid',
      'LOG_SIGNING_KEY_FILE must be set if DATABASE_URL is and the services include the projector: a file with the key that signs the transparency log, the same for all processes. Create one: openssl genpkey -algorithm ed25519 -out log-signing-key.pem',
    );
  const witnesses = await readConfiguredWitnesses(config);
  const keyFile = resolve(LOG_SIGNING_KEY_FILE);
  return { origin: LOG_ORIGIN, keyFile, createsKey: false, witnesses };
}

interface ProverOptions extends Pick<
  Prover,
  'followed' | 'declareTree' | 'onDeclared' | 'untilCompared' | 'untilFilled'
> {
  log: EventLog;
  acquireLeadership: Prover['acquireLeadership'];
  signing: SigningConfig;
  onReport: Prover['onReport'];
  onWitnesses: Prover['onWitnesses'];
  logger: ProverLogger;
  signal: AbortSignal;
}

/** The keys of the file, which is created only for a tree that was never signed. */
function readOrCreateKeys({ keyFile, createsKey }: SigningConfig, hasSigned: boolean): KeyObject[] {
  if (!existsSync(keyFile)) {
    if (hasSigned || !createsKey) return [];
    makeSigningKey(keyFile);
  }
  return readSigningKeys(keyFile);
}

/** Declares trees in the log through a store. */
const declareThrough =
  (store: ProtectedStore): Prover['declareTree'] =>
  (tree) =>
    declareTree(
      {
        store,
        damaged: createDamagedStreams(() => undefined),
        clock: systemClock,
        ids: systemIds,
      },
      tree,
    );

/** Proves until the signal aborts; it recovers from failures itself. */
const runConfiguredProver = ({ signing, ...options }: ProverOptions): Promise<void> =>
  runProver({
    ...options,
    origin: signing.origin,
    signingKeys: (hasSigned) => readOrCreateKeys(signing, hasSigned),
    witnesses: {
      wanted: signing.witnesses?.wanted ?? 0,
      witnesses: signing.witnesses?.witnesses.map((entry) => createHttpWitness(entry)) ?? [],
    },
    clock: systemClock,
  });

/** The trees of a data folder: its only process always leads. */
const openExclusiveTrees = (folder: string) => async (): Promise<ActiveTrees> => ({
  ...openFileTileTrees(folder),
  ...permanentLeadership(),
});

/** A report of the prover in a thread. */
type ThreadReport = { report: ProverReport } | { witnesses: WitnessesReport } | { declared: true };

/** Runs the prover in the thread of an embedded service. */
export const runProverInThread = (
  { place, signing, reports }: ThreadData,
  {
    keys,
    ...options
  }: Pick<ProverOptions, 'log' | 'logger' | 'signal' | 'untilFilled'> & { keys: Keyring },
): Promise<void> => {
  const send = (report: ThreadReport): void => reports.postMessage(report);
  return runConfiguredProver({
    ...options,
    // A log in a folder is read as it is: there is no server to distrust.
    followed: 'folder' in place.log ? options.log : withGapCheck(options.log),
    signing,
    acquireLeadership: openExclusiveTrees(treesFolder(place)),
    // The thread reads the log only, except for this, which happens once for each tree.
    async declareTree(tree) {
      const store = await openEventStore(place.log, options.logger);
      try {
        return await declareThrough({ ...store, keys })(tree);
      } finally {
        await store.close();
      }
    },
    async untilCompared(signal) {
      // An aborted signal ends the wait without an error.
      await once(reports, 'message', { signal }).catch(() => undefined);
    },
    onReport: (report) => send({ report }),
    onWitnesses: (witnesses) => send({ witnesses }),
    onDeclared: () => send({ declared: true }),
  });
};

/** True if the first events of a log are not only those of accounts: a service was used. */
async function hasServed(log: EventLog, signal: AbortSignal): Promise<boolean> {
  for await (const { events } of log.subscribe({ after: undefined, batchSize: 1_000, signal }))
    return events.some(({ stream }) => streamKind(stream) !== 'account');
  return false;
}

/** The health of a prover, with what this process has found about its tree. */
const proverHealthPart = (
  { health }: Pick<ProverHealth, 'health'>,
  { check, leaves }: { check: TreeCheck; leaves: Pick<LeafComparison, 'trouble'> },
) => ({
  async health(): Promise<{ transparency_log: TransparencyLogHealth }> {
    const [trouble, doubt] = [leaves.trouble(), check.doubt()];
    const report = { ...(trouble && { trouble }), ...(await health()) };
    return { transparency_log: { ...report, ...(doubt && { doubt }) } };
  },
});

/** The counterpart in the main thread: starts the thread, reports its prover, reads the tree. */
export async function openThreadProver(
  { config, logger }: Pick<Opening, 'config' | 'logger'>,
  place: EmbeddedLocation,
  log: EventLog,
): Promise<{
  threadData(): ThreadData;
  check: TreeCheck;
  part: ProcessPart;
  tiles: OwnTree;
  leaves: LeafComparison;
}> {
  const witnesses = await readConfiguredWitnesses(config);
  const signing = { ...signingConfig(config, place.dataFolder), witnesses };
  // A key that is missing is created by the prover, which knows whether the log was signed.
  if (!signing.createsKey || existsSync(signing.keyFile)) readSigningKeys(signing.keyFile);
  const prover = createProverHealth(log, systemClock);
  const trees = storedTrees(signing, treeFilesOf(place), true);
  const outside = openOutsideEvidence(config, witnesses);
  const check = createTreeCheck(async (signal) => {
    const isKeyThere = existsSync(signing.keyFile);
    const comparison = await compareTree(log, trees, outside, signal);
    // A log that only has accounts was written by operator commands or a first start, and not signed.
    const isKnown = signing.createsKey && (isKeyThere || (await hasServed(log, signal)));
    return { ...comparison, isNew: comparison.isNew && isKnown };
  }, logger);
  const tiles = openOwnTree(log, trees);
  const leaves = createLeafComparison(log, tiles);
  return {
    threadData() {
      const { port1, port2 } = new MessageChannel();
      port1
        .on('message', (message: ThreadReport) => {
          if ('report' in message) prover.onReport(message.report);
          else if ('witnesses' in message) prover.onWitnesses(message.witnesses);
          else prover.onDeclared();
        })
        .unref();
      void check.passed.then(() => port1.postMessage('begin'));
      return { place, signing, stopFree: config.DISK_STOP_FREE, reports: port2 };
    },
    check,
    part: {
      ...proverHealthPart(prover, { check, leaves }),
      // So that a log holds its declaration before the first event of a client.
      async settle() {
        await resolvesWithin(prover.declared, SETTLE_MS);
        // Log lines come through another port. Those that were sent before arrive in this turn.
        await setImmediate();
      },
    },
    tiles,
    leaves,
  };
}

/**
 * The trees of a replica. Throws `configuration_invalid` where it has a key file that can't be read: without
 * the keys it would believe those that the log declares.
 */
export function replicaTrees(
  { config, services }: Pick<Opening, 'config' | 'services'>,
  treeOf: (origin: string) => TileReader,
): StoredTrees {
  const { LOG_ORIGIN: origin, LOG_SIGNING_KEY_FILE: file } = config;
  const keyFile = file && resolve(file);
  if (keyFile !== undefined) readSigningKeys(keyFile);
  return storedTrees({ origin, keyFile }, treeOf, services.includes('projector'));
}

/** The check of a replica, which each process of a service makes, whether it proves or not. */
export async function openReplicaTreeCheck(
  { config, logger }: Pick<Opening, 'config' | 'logger'>,
  log: EventLog,
  trees: StoredTrees,
): Promise<TreeCheck> {
  const outside = openOutsideEvidence(config, await readConfiguredWitnesses(config));
  return createTreeCheck(async (signal) => {
    const comparison = await compareTree(log, trees, outside, signal);
    // The key file is the operator's, and says nothing of whether the log was signed.
    return { ...comparison, isNew: false };
  }, logger);
}

/** The health of a process that does not run the prover. */
const standingBy = async (): Promise<TransparencyLogHealth> => ({
  state: 'standing_by',
  size: null,
  lag_ms: null,
  signed_at: null,
});

interface ReplicaProver {
  databaseUrl: string;
  check: TreeCheck;
  leaves: LeafComparison;
  findings: TransparencyFindings;
}

/** The prover of a replica, if the process runs the projector service, and the health in any case. */
export async function openProver(
  opening: Opening,
  store: ProtectedStore,
  { databaseUrl, check, leaves, findings }: ReplicaProver,
): Promise<ProcessPart> {
  const { config, logger, services, opened } = opening;
  const shared = (health: ProverHealth['health']) =>
    sharedTransparencyPart(proverHealthPart({ health }, { check, leaves }), findings, logger);
  if (!services.includes('projector')) return shared(standingBy);
  const signing = await replicaSigningConfig(config);
  readSigningKeys(signing.keyFile);
  const prover = createProverHealth(store, systemClock);
  const closing = new AbortController();
  const onFailure = (error: unknown, retry_in_ms: number): void =>
    logger.warn({ err: error, retry_in_ms }, 'the database of the transparency log is unavailable');
  const acquireLeadership = async (signal: AbortSignal): Promise<ActiveTrees | undefined> => {
    const { acquireProverLease } = await import('../../../infra/postgres/tiles/trees.ts');
    return acquireProverLease({ databaseUrl, signal, onFailure });
  };
  const { signal } = closing;
  const { onReport, onWitnesses } = prover;
  const reports = { onReport, onWitnesses };
  const run = runConfiguredProver({
    log: store,
    followed: withGapCheck(store),
    declareTree: declareThrough(store),
    untilCompared: async (stop) => {
      if (!stop.aborted) await Promise.race([check.passed, once(stop, 'abort')]);
    },
    acquireLeadership,
    signing,
    ...reports,
    logger,
    signal,
  });
  opened.defer(async () => {
    closing.abort();
    await run;
  });
  return shared(prover.health);
}
