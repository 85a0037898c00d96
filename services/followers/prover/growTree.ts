import { createLogWatch } from '../../../shared/eventlog/identity/logWatch.ts';
import {
  readLogIdentity,
  type IdentifiableLog,
  type LogIdentity,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import { followLog } from '../../../shared/eventlog/following/followLog.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { EventBatch, Position } from '../../../shared/ports/eventStore.ts';
import type { TileTrees } from '../../../shared/transparency/tileStore.ts';
import { formatCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { signNote } from '../../../shared/transparency/tlog/note.ts';
import { startCosigner, type Cosigner } from './cosigner.ts';
import { repairBundleIndex } from './repairBundleIndex.ts';
import { openTree, type OpenTree } from './openTree.ts';
import type { Prover } from './prover.ts';

const BATCH_SIZE = 1_000;
/** Leaves after which a checkpoint is due while more events arrive. */
const EVENTS = 10_000;
/**
 * The longest time for which a leaf waits for others. An event that comes while a checkpoint is made
 * waits for that one and for the next; together that has to stay below a second. A shorter time would
 * slow down appends, which need the same disk.
 */
const WAIT_MS = 250;
/** Between reads: batches cost less than single events. */
const GATHER_MS = 50;
/** When no event has come for so long, a checkpoint is due at once. */
const QUIET_MS = 50;
/** How often an empty log is checked. */
const EMPTY_LOG_MS = 250;
/** How long a log may be ahead of a subscription that brings nothing. */
const SILENCE_MS = 5_000;
const CHECK_MS = 1_000;

/** Returns true for a batch after a declaration that is not in `identity`: another tree begins there. */
const isOfAnotherLog = ({ checkpoint }: EventBatch, { root, declarations }: LogIdentity): boolean =>
  checkpoint !== undefined &&
  checkpoint.log_id !== root &&
  !declarations.some(({ id }) => id === checkpoint.log_id);

/**
 * Signs the tree as it is stored, and publishes the checkpoint with the cosignatures of witnesses. What
 * is signed is stored before, so that the tree can always be continued.
 */
async function publishCheckpoint(
  cosigner: Pick<Cosigner, 'publish'>,
  tree: OpenTree,
  clock: Clock,
): Promise<void> {
  const { origin, signers } = tree;
  const root = tree.root();
  const checkpoint = formatCheckpoint({ origin, size: tree.storedSize(), root });
  await cosigner.publish(signNote(checkpoint, signers));
  tree.markSigned(clock.now());
}

/** Signs added leaves when a checkpoint is due. */
function createSigning(prover: Prover, tree: OpenTree, cosigner: Cosigner) {
  let lastAttemptAt = performance.now();
  let reported: Position | undefined;

  return {
    isDue: () => tree.pending() >= EVENTS || performance.now() - lastAttemptAt >= WAIT_MS,
    async sign(): Promise<void> {
      lastAttemptAt = performance.now();
      if (tree.pending() > 0) await tree.persist();
      if (tree.signedSize() < tree.storedSize())
        await publishCheckpoint(cosigner, tree, prover.clock);
    },
    /** Reports that a checkpoint covers everything up to a position, unless leaves wait for one. */
    reportCovered(position: Position | undefined): void {
      const isSigned = tree.pending() === 0 && tree.signedSize() === tree.storedSize();
      if (!isSigned || position === reported) return;
      reported = position;
      prover.onReport({
        state: 'active',
        size: tree.signedSize(),
        position,
        signedAt: tree.signedAt(),
      });
    },
  };
}

/** Adds leaves until the log was declared to be another one, or the signal aborts. */
async function addLeaves(
  prover: Prover,
  { tree, cosigner }: { tree: OpenTree; cosigner: Cosigner },
  identity: LogIdentity,
): Promise<void> {
  const { log, signal } = prover;
  const checkForSilence = createSilenceCheck(log);
  const signing = createSigning(prover, tree, cosigner);
  await followLog({
    log,
    after: tree.last(),
    batchSize: BATCH_SIZE,
    signal,
    async handleBatch(batch) {
      const isOther = isOfAnotherLog(batch, identity);
      if (!isOther) for (const event of batch.events) tree.add(event);
      if (isOther || signing.isDue()) await signing.sign();
      signing.reportCovered(batch.position);
      if (isOther) return 'stop';
      if (batch.events.length < BATCH_SIZE) await sleepUntilAborted(GATHER_MS, { signal });
      return undefined;
    },
    idle: {
      afterMs: QUIET_MS,
      async onIdle(reached) {
        await checkForSilence(reached);
        await signing.sign();
        signing.reportCovered(reached);
      },
    },
  });
}

/** Fails where the log goes on and its subscription brings nothing; checks at most once a second. */
function createSilenceCheck(log: Pick<IdentifiableLog, 'head'>) {
  const requireProgress = createLogWatch(log, SILENCE_MS);
  let checkedAt = performance.now();
  return async (reached: Position | undefined): Promise<void> => {
    if (performance.now() - checkedAt < CHECK_MS) return;
    await requireProgress(reached);
    checkedAt = performance.now();
  };
}

/** Continues the tree of the log until the log is declared to be another one, or the signal aborts. */
export async function growTree(prover: Prover, trees: TileTrees): Promise<void> {
  const { log, logger, signal } = prover;
  const identity = await readLogIdentity(log);
  if (!identity) return sleepUntilAborted(EMPTY_LOG_MS, { signal });
  const tree = await openTree(prover, trees, identity);
  await repairBundleIndex(prover, tree, identity);
  if (tree.storedSize() === 0)
    logger.info({ origin: tree.origin }, 'A transparency log was started for this event log');
  const cosigner = startCosigner({
    ...prover.witnesses,
    tiles: tree.store,
    served: await tree.store.readCheckpoint(),
    onReport: prover.onWitnesses,
    logger,
  });
  try {
    await addLeaves(prover, { tree, cosigner }, identity);
  } finally {
    await cosigner.close();
  }
}
