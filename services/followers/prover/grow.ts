import { createLogWatch } from '../../../shared/eventlog/identity/logWatch.ts';
import {
  identityOf,
  type Identified,
  type LogIdentity,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import { followLog } from '../../../shared/eventlog/following/followLog.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { EventBatch, Position } from '../../../shared/ports/eventStore.ts';
import type { TileTrees } from '../../../shared/transparency/tileStore.ts';
import { startCosigner, type Cosigner } from './cosign.ts';
import { repairBundleIndex } from './mendBundles.ts';
import { openTree, type OpenTree } from './openTree.ts';
import type { Prover } from './prover.ts';
import { publishCheckpoint } from './publishCheckpoint.ts';

const BATCH_SIZE = 1_000;
/** Events after which a checkpoint is due, while there are always more. */
const EVENTS = 10_000;
/**
 * An event waits so long for others, at most: with the work twice, for what came while the last
 * checkpoint was made, that has to stay below a second. Less would cost the disk, which appends
 * need as well.
 */
const WAIT_MS = 250;
/** Between reads: what came together costs less than each append by itself. */
const GATHER_MS = 50;
/** Nothing more has come for so long: who waits for the event's proof need not wait longer. */
const QUIET_MS = 50;
/** How often an empty log is looked at. */
const EMPTY_LOG_MS = 250;
/** How long a log may be ahead of a subscription that brings nothing. */
const SILENCE_MS = 5_000;
const CHECK_MS = 1_000;

/** True for a batch behind a declaration that was not known: another tree is to begin. */
const isOfAnotherLog = ({ checkpoint }: EventBatch, { root, declarations }: LogIdentity): boolean =>
  checkpoint !== undefined &&
  checkpoint.log_id !== root &&
  !declarations.some(({ id }) => id === checkpoint.log_id);

/** Signs what has come in, when it is time. */
function createSigning(prover: Prover, tree: OpenTree, cosigner: Cosigner) {
  /** What came since then waits: when it was last looked whether anything did. */
  let since = performance.now();
  let reported: Position | undefined;

  return {
    isDue: () => tree.pending() >= EVENTS || performance.now() - since >= WAIT_MS,
    /** Errors: those of the store. */
    async sign(): Promise<void> {
      since = performance.now();
      if (tree.pending() > 0) await tree.persist();
      if (tree.signedSize() < tree.storedSize())
        await publishCheckpoint(cosigner, tree, prover.clock);
    },
    /** Everything up to here has its leaf under a checkpoint, if nothing waits for one. */
    covered(position: Position | undefined): void {
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

/** Resolves when the log was declared to be another one, or the signal aborted. */
async function followTo(
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
      signing.covered(batch.position);
      if (isOther) return 'stop';
      if (batch.events.length < BATCH_SIZE) await sleepUntilAborted(GATHER_MS, { signal });
      return undefined;
    },
    idle: {
      afterMs: QUIET_MS,
      async onIdle(reached) {
        await checkForSilence(reached);
        await signing.sign();
        signing.covered(reached);
      },
    },
  });
}

/** Fails where the log goes on and its subscription brings nothing; checks at most once a second. */
function createSilenceCheck(log: Pick<Identified, 'head'>) {
  const requireProgress = createLogWatch(log, SILENCE_MS);
  let checkedAt = performance.now();
  return async (reached: Position | undefined): Promise<void> => {
    if (performance.now() - checkedAt < CHECK_MS) return;
    await requireProgress(reached);
    checkedAt = performance.now();
  };
}

/**
 * Carries on the tree of the log until that is declared to be another one, a failure, or the signal.
 * Errors: those of the log, the store and `openTree`.
 */
export async function growTree(prover: Prover, trees: TileTrees): Promise<void> {
  const { log, logger, signal } = prover;
  const identity = await identityOf(log);
  if (!identity) return sleepUntilAborted(EMPTY_LOG_MS, { signal });
  const tree = await openTree(prover, trees, identity);
  await repairBundleIndex(prover, tree, identity);
  if (tree.storedSize() === 0)
    logger.info({ origin: tree.origin }, 'The transparency log of this log is begun');
  const cosigner = startCosigner({
    ...prover.witnesses,
    tiles: tree.store,
    served: await tree.store.readCheckpoint(),
    onReport: prover.onWitnesses,
    logger,
  });
  try {
    await followTo(prover, { tree, cosigner }, identity);
  } finally {
    await cosigner.close();
  }
}
