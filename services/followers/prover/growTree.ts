import { createLogWatch } from '../../../shared/eventlog/identity/logWatch.ts';
import type {
  IdentifiableLog,
  LogIdentity,
} from '../../../shared/eventlog/identity/logIdentity.ts';
import { followLog } from '../../../shared/eventlog/following/followLog.ts';
import { sleepUntilAborted } from '../../../shared/lib/time/sleep.ts';
import type { Clock } from '../../../shared/ports/clock.ts';
import type { EventBatch, Position } from '../../../shared/ports/eventStore.ts';
import type { TileTrees } from '../../../shared/transparency/tileStore.ts';
import {
  isTreeReplacement,
  readLogTrees,
  type LogTrees,
} from '../../../shared/transparency/logTrees.ts';
import { formatCheckpoint } from '../../../shared/transparency/tlog/checkpoint.ts';
import { EMPTY_ROOT } from '../../../shared/transparency/tlog/merkle.ts';
import { formatVkey } from '../../../shared/transparency/tlog/noteKeys.ts';
import { signNote } from '../../../shared/transparency/tlog/note.ts';
import { startCosigner, type Cosigner } from './cosigner.ts';
import { createIndexRepair, repairBundleIndex } from './repairBundleIndex.ts';
import { openTree, treeRefusal, type OpenTree } from './openTree.ts';
import type { Prover } from './prover.ts';
import { requireTreeMatchesLog } from './requireTreeMatchesLog.ts';

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
const GATHER_MS = 100;
/** When no event has come for so long, a checkpoint is due at once. */
const QUIET_MS = 50;
/** How often an empty log is checked. */
const EMPTY_LOG_MS = 50;
/** How long a log may be ahead of a subscription that brings nothing. */
const SILENCE_MS = 5_000;
const CHECK_MS = 1_000;

/**
 * Returns true for a batch with or after a declaration that was not known when the tree was opened:
 * another tree begins there.
 */
function isOfAnotherTree(
  { checkpoint, events }: EventBatch,
  { identity, treeId, earlierIds }: LogTrees,
): boolean {
  const { root, declarations }: LogIdentity = identity;
  const isKnownLog =
    checkpoint === undefined ||
    checkpoint.log_id === root ||
    declarations.some(({ id }) => id === checkpoint.log_id);
  const treeIds = [...earlierIds, treeId];
  return (
    !isKnownLog ||
    events.some((event) => isTreeReplacement(event, root) && !treeIds.includes(event.id))
  );
}

/**
 * Records the tree in the log, unless the log declares it. The signed checkpoint of an empty tree is
 * stored before: a tree that is declared and has no checkpoint was deleted, at any point of a crash.
 * Resolves with the position that the first checkpoint with leaves has to cover.
 */
async function declareTree(
  { declareTree: declare, onDeclared, logger }: Prover,
  { origin, store, signers, hasCheckpoint }: OpenTree,
  { declared }: LogTrees,
): Promise<Position | undefined> {
  const declaration = declared.get(origin);
  const vkeys = signers.map(({ key }) => formatVkey(key));
  const isDeclared = declaration && vkeys.every((vkey) => declaration.vkeys.includes(vkey));
  if (!hasCheckpoint)
    await store.publish(signNote(formatCheckpoint({ origin, size: 0, root: EMPTY_ROOT }), signers));
  const position = isDeclared ? declaration.position : await declare({ origin, vkeys });
  // Logged first: the service is up once it knows of the declaration.
  if (!hasCheckpoint) logger.info({ origin }, 'A transparency log was started for this event log');
  onDeclared?.();
  return position;
}

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

/** An open tree that is declared in the log. */
interface GrowingTree {
  tree: OpenTree;
  cosigner: Cosigner;
  /** The position of its declaration; undefined if it is not known. */
  declaredAt: Position | undefined;
  /** Called with the size of each signed checkpoint. */
  onSigned: (size: number) => void;
}

/** Signs added leaves when a checkpoint is due. */
function createSigning(prover: Prover, { tree, cosigner, declaredAt, onSigned }: GrowingTree) {
  let lastAttemptAt = performance.now();
  let reported: Position | undefined;

  return {
    isDue: () => tree.pending() >= EVENTS || performance.now() - lastAttemptAt >= WAIT_MS,
    async sign(): Promise<void> {
      lastAttemptAt = performance.now();
      if (tree.pending() > 0) await tree.persist();
      const coversDeclaration = (tree.last()?.position ?? '') >= (declaredAt ?? '');
      if (tree.signedSize() === tree.storedSize() || !coversDeclaration) return;
      // Before it is published: a witness may have it although publishing fails.
      onSigned(tree.storedSize());
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
async function addLeaves(prover: Prover, growing: GrowingTree, trees: LogTrees): Promise<void> {
  const { log, followed, signal } = prover;
  const { tree } = growing;
  const checkForSilence = createSilenceCheck(log);
  const signing = createSigning(prover, growing);
  const repairIndex = createIndexRepair(prover, tree, trees.identity);
  await followLog({
    log: followed,
    after: tree.last(),
    batchSize: BATCH_SIZE,
    signal,
    async handleBatch(batch) {
      const isOther = isOfAnotherTree(batch, trees);
      if (!isOther) for (const event of batch.events) tree.add(event);
      if (isOther || signing.isDue()) await signing.sign();
      signing.reportCovered(batch.position);
      if (isOther) return 'stop';
      await repairIndex();
      if (batch.events.length < BATCH_SIZE) await sleepUntilAborted(GATHER_MS, { signal });
      return undefined;
    },
    idle: {
      afterMs: QUIET_MS,
      async onIdle(reached) {
        await checkForSilence(reached);
        await signing.sign();
        signing.reportCovered(reached);
        await repairIndex();
      },
    },
  });
}

/** Fails if the log grows and its subscription delivers nothing; checks at most once a second. */
function createSilenceCheck(log: Pick<IdentifiableLog, 'head'>) {
  const requireProgress = createLogWatch(log, SILENCE_MS);
  let checkedAt = performance.now();
  return async (reached: Position | undefined): Promise<void> => {
    if (performance.now() - checkedAt < CHECK_MS) return;
    await requireProgress(reached);
    checkedAt = performance.now();
  };
}

/**
 * Continues the tree of the log until another tree is declared, or the signal aborts. `signedHere` has
 * the size that this process has signed of each origin: a tree that was put back to an earlier state
 * while the process runs is refused.
 */
export async function growTree(
  prover: Prover,
  trees: TileTrees,
  signedHere: Map<string, number>,
): Promise<void> {
  const { log, logger, signal } = prover;
  const logTrees = await readLogTrees(log);
  if (!logTrees) return sleepUntilAborted(EMPTY_LOG_MS, { signal });
  const tree = await openTree(prover, trees, logTrees);
  const signed = Math.max(signedHere.get(tree.origin) ?? 0, tree.signedSize());
  signedHere.set(tree.origin, signed);
  if (signed > tree.storedSize())
    throw treeRefusal(
      tree.origin,
      `this process has signed ${signed} leaves, and only ${tree.storedSize()} are stored: its files, and maybe the event log, were put back to an earlier state. Put the right ones back. If this was on purpose, declare it: npm run cli -- log accept-restored --reason <text>.`,
    );
  const declaredAt = await declareTree(prover, tree, logTrees);
  await repairBundleIndex(prover, tree, logTrees.identity);
  await requireTreeMatchesLog(prover, tree, logTrees.identity);
  const cosigner = startCosigner({
    ...prover.witnesses,
    tiles: tree.store,
    served: tree.signedSize() > 0 ? await tree.store.readCheckpoint() : undefined,
    onReport: prover.onWitnesses,
    logger,
  });
  try {
    await prover.untilFilled?.(signal);
    await addLeaves(
      prover,
      { tree, cosigner, declaredAt, onSigned: (size) => void signedHere.set(tree.origin, size) },
      logTrees,
    );
  } finally {
    await cosigner.close();
  }
}
