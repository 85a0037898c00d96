import { join, resolve } from 'node:path';
import { MessageChannel, type MessagePort } from 'node:worker_threads';
import {
  openFileTileReader,
  openOneFileTree,
  type CheckedTree,
} from '../../../infra/files/tileReader.ts';
import { openFileTileTrees } from '../../../infra/files/tileStore.ts';
import { createHttpWitness } from '../../../infra/witness/httpWitness.ts';
import { readWitnessesFile, type WitnessesFile } from '../../../infra/witness/witnessesFile.ts';
import type { Config } from '../../../shared/lib/config/config.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { EventLog, EventStore } from '../../../shared/ports/eventStore.ts';
import type { ActiveTrees, TileReader } from '../../../shared/transparency/tileStore.ts';
import type { ProverReport } from '../../../shared/health/health.ts';
import { createProverHealth, type ProverHealth } from '../../followers/prover/health.ts';
import type { Prover, ProverLogger } from '../../followers/prover/prover.ts';
import type { WitnessesReport } from '../../followers/prover/witnesses.ts';
import { runProver } from '../../followers/prover/run.ts';
import type { ProcessPart } from '../../process/processParts.ts';
import type { Opening } from '../opening.ts';
import type { EmbeddedLocation } from '../logLocation.ts';
import { makeSigningKey, readSigningKeys } from '../signingKeys.ts';
import { systemClock } from '../system.ts';

/** The name and keys of a prover of checkpoints. Plain data, so that it can be passed to a thread. */
export interface SigningConfig {
  origin: string;
  /** The absolute path of the key file. */
  keyFile: string;
  /** Undefined if no witnesses are configured. */
  witnesses: WitnessesFile | undefined;
}

/** The data that starts the thread of an embedded service. */
export interface ThreadData {
  place: EmbeddedLocation;
  signing: SigningConfig;
  /** Receives the reports of the prover. */
  reports: MessagePort;
}

const KEY_FILE = 'log-signing-key.pem';

/** The folder of the trees of an embedded service. */
const treesFolder = ({ dataFolder }: Pick<EmbeddedLocation, 'dataFolder'>): string =>
  join(dataFolder, 'tlog');

const readConfiguredWitnesses = async ({ LOG_WITNESSES_FILE: file }: Config) =>
  file === undefined ? undefined : readWitnessesFile(resolve(file));

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
});

async function replicaSigningConfig(config: Config): Promise<SigningConfig> {
  const { LOG_ORIGIN, LOG_SIGNING_KEY_FILE } = config;
  if (LOG_SIGNING_KEY_FILE === undefined)
    throw new TurnlogError(
      'configuration_invalid',
      'LOG_SIGNING_KEY_FILE must be set if DATABASE_URL is and the services include the projector: a file with the key that signs the transparency log, the same for all processes. Create one: openssl genpkey -algorithm ed25519 -out log-signing-key.pem',
    );
  const witnesses = await readConfiguredWitnesses(config);
  return { origin: LOG_ORIGIN, keyFile: resolve(LOG_SIGNING_KEY_FILE), witnesses };
}

interface ProverOptions {
  log: EventLog;
  acquireLeadership: Prover['acquireLeadership'];
  signing: SigningConfig;
  onReport: Prover['onReport'];
  onWitnesses: Prover['onWitnesses'];
  logger: ProverLogger;
  signal: AbortSignal;
}

/** Proves until the signal aborts; it recovers from failures itself. */
const runConfiguredProver = ({ signing, ...options }: ProverOptions): Promise<void> =>
  runProver({
    ...options,
    origin: signing.origin,
    signingKeys: () => readSigningKeys(signing.keyFile),
    witnesses: {
      wanted: signing.witnesses?.wanted ?? 0,
      witnesses: signing.witnesses?.witnesses.map((entry) => createHttpWitness(entry)) ?? [],
    },
    clock: systemClock,
  });

/** The trees of a data folder: its only process always leads. */
const openExclusiveTrees = (folder: string) => async (): Promise<ActiveTrees> => ({
  ...openFileTileTrees(folder),
  lost: new AbortController().signal,
  close: async () => undefined,
});

/** Runs the prover in the thread of an embedded service. */
export const runProverInThread = (
  { place, signing, reports }: ThreadData,
  options: Pick<ProverOptions, 'log' | 'logger' | 'signal'>,
): Promise<void> =>
  runConfiguredProver({
    ...options,
    signing,
    acquireLeadership: openExclusiveTrees(treesFolder(place)),
    onReport: (report) => reports.postMessage({ report }),
    onWitnesses: (witnesses) => reports.postMessage({ witnesses }),
  });

/** The counterpart in the main thread: starts the thread, reports its prover, reads the tree. */
export async function openThreadProver(
  config: Config,
  place: EmbeddedLocation,
  log: EventLog,
): Promise<{ threadData(): ThreadData; part: ProcessPart; tiles: TileReader }> {
  const witnesses = await readConfiguredWitnesses(config);
  const signing = { ...signingConfig(config, place.dataFolder), witnesses };
  if (config.LOG_SIGNING_KEY_FILE === undefined) makeSigningKey(signing.keyFile);
  readSigningKeys(signing.keyFile);
  const prover = createProverHealth(log, systemClock);
  return {
    threadData() {
      const { port1, port2 } = new MessageChannel();
      port1
        .on('message', (message: { report: ProverReport } | { witnesses: WitnessesReport }) =>
          'report' in message
            ? prover.onReport(message.report)
            : prover.onWitnesses(message.witnesses),
        )
        .unref();
      return { place, signing, reports: port2 };
    },
    part: proverHealthPart(prover),
    tiles: openFileTileReader(treesFolder(place)),
  };
}

const proverHealthPart = ({ health }: ProverHealth): ProcessPart => ({
  health: async () => ({ transparency_log: await health() }),
});

/** The prover part of a replica; empty if the process does not run the projector service. */
export async function openProver(
  opening: Opening,
  store: EventStore,
  databaseUrl: string,
): Promise<ProcessPart[]> {
  const { config, logger, services, opened } = opening;
  if (!services.includes('projector')) return [];
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
  return [proverHealthPart(prover)];
}
