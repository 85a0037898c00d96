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

/** What a prover of checkpoints is called, and where its keys are. Plain data, for a thread. */
export interface SigningConfig {
  origin: string;
  /** Absolute. */
  keyFile: string;
  /** Undefined where nobody is asked to cosign. */
  witnesses: WitnessesFile | undefined;
}

/** What the thread of an embedded service is started with. */
export interface ThreadData {
  place: EmbeddedLocation;
  signing: SigningConfig;
  /** Where its prover reports. */
  reports: MessagePort;
}

const KEY_FILE = 'log-signing-key.pem';

/** The folder with the trees of an embedded service. */
const treesFolder = ({ dataFolder }: Pick<EmbeddedLocation, 'dataFolder'>): string =>
  join(dataFolder, 'tlog');

/** Errors: `configuration_invalid`. */
const readConfiguredWitnesses = async ({ LOG_WITNESSES_FILE: file }: Config) =>
  file === undefined ? undefined : readWitnessesFile(resolve(file));

/** Reads one tree of a data folder, for a command that must not go on in another one. */
export const openTreeFiles = (place: Pick<EmbeddedLocation, 'dataFolder'>): CheckedTree =>
  openOneFileTree(treesFolder(place));

/** The keys of a process with a data folder. */
export const signingConfig = (
  { LOG_ORIGIN, LOG_SIGNING_KEY_FILE }: Config,
  dataFolder: string,
): Omit<SigningConfig, 'witnesses'> => ({
  origin: LOG_ORIGIN,
  keyFile:
    LOG_SIGNING_KEY_FILE === undefined ? join(dataFolder, KEY_FILE) : resolve(LOG_SIGNING_KEY_FILE),
});

/** Errors: `configuration_invalid` where the option is not set. */
async function replicaSigningConfig(config: Config): Promise<SigningConfig> {
  const { LOG_ORIGIN, LOG_SIGNING_KEY_FILE } = config;
  if (LOG_SIGNING_KEY_FILE === undefined)
    throw new TurnlogError(
      'configuration_invalid',
      'LOG_SIGNING_KEY_FILE must be set where DATABASE_URL is and the services include the projector: a file with the key that signs the transparency log, the same for all processes. Make one: openssl genpkey -algorithm ed25519 -out log-signing-key.pem',
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

/** Proves until the signal aborts; it needs nobody's care. */
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

/** Whoever has the data folder has its trees. */
const openExclusiveTrees = (folder: string) => async (): Promise<ActiveTrees> => ({
  ...openFileTileTrees(folder),
  lost: new AbortController().signal,
  close: async () => undefined,
});

/** The prover in the thread of an embedded service. */
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

/**
 * The other end: what the thread is started with, what is known of its prover, and what reads the
 * tree. Errors: `configuration_invalid` (the keys, the file of witnesses).
 */
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
        .on('message', (said: { report: ProverReport } | { witnesses: WitnessesReport }) =>
          'report' in said ? prover.onReport(said.report) : prover.onWitnesses(said.witnesses),
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

/**
 * The prover of one process of several; no part where the projector is not among the services.
 * Errors: `configuration_invalid` (the keys, the file of witnesses).
 */
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
    logger.warn({ err: error, retry_in_ms }, 'The database of the transparency log is away');
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
