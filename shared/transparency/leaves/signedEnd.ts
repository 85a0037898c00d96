import {
  isTurnlogError,
  proofInvalidError,
  storeUnavailableError,
} from '../../lib/errors/turnlogError.ts';
import type { Checkpoint, EventLog, Position, StoredEvent } from '../../ports/eventStore.ts';
import type { SignedHead } from '../ownTree.ts';
import { recordedHash } from '../proof/nameChange.ts';
import type { TreeState } from '../tileStore.ts';
import { TILE_WIDTH } from '../tlog/tiles.ts';
import type { LeadsToHead } from './signedLeaves.ts';

/** How long reading the events of the last leaves may take. */
const READ_MS = 10_000;

/** How far the newest checkpoint goes: later events are not compared. */
export interface SignedEnd {
  head: SignedHead;
  /** The last event that the checkpoint covers; undefined for that of an empty tree. */
  last: Pick<Checkpoint, 'position' | 'event_id'> | undefined;
}

export type ComparedLog = Pick<EventLog, 'eventAt' | 'firstEvent' | 'readStream' | 'subscribe'>;

/** The log has another event, or none, where the tree ends: one of them was changed. */
export const otherEnd = ({
  event_id,
  position,
}: Pick<Checkpoint, 'event_id' | 'position'>): Error =>
  proofInvalidError(
    `The transparency log ends with the event ${event_id} at ${position}, which the event log does not have there. Restore both from one backup.`,
  );

const lostState = (reason: string): Error =>
  proofInvalidError(`${reason} Put its files back from a backup.`);

/** The next events of the log after a position, `count` of them where there are so many. */
async function readAfter(
  log: ComparedLog,
  after: Position | undefined,
  count: number,
): Promise<StoredEvent[]> {
  const found: StoredEvent[] = [];
  const signal = AbortSignal.timeout(READ_MS);
  for await (const { events, caughtUp } of log.subscribe({ after, batchSize: count, signal })) {
    found.push(...events);
    if (caughtUp || found.length >= count) return found;
  }
  throw storeUnavailableError('The event log does not answer where the transparency log ends.');
}

/**
 * Returns a function that finds the last event under a signed head. Nothing signs positions. Those of the
 * tree's state and of its index of bundles are therefore taken only where the event that the log has there
 * is the one of the signed leaf. Otherwise an event could be rewritten, and given a leaf behind those that
 * were signed. It throws `proof_invalid` where the tree has fewer leaves than were signed, does not say
 * where they end, or the log has other events there; and `store_unavailable`.
 */
export function createEndFinder(
  log: ComparedLog,
  leads: LeadsToHead,
): (head: SignedHead) => Promise<SignedEnd> {
  const isSigned = (head: SignedHead, index: number, hash: string): Promise<boolean> =>
    leads(head.reader, head, { index, hash });

  /** The start of a bundle, whose leaf before is signed and of the event that the log has there. */
  async function startOf(head: SignedHead, bundle: number): Promise<Checkpoint | undefined> {
    if (bundle === 0) return undefined;
    const start = await head.reader.beforeBundle(bundle);
    if (!start || !(await isSigned(head, bundle * TILE_WIDTH - 1, start.event_hash)))
      throw proofInvalidError(
        `The transparency log does not know where bundle ${bundle} begins: its index of bundles is damaged. A running server rebuilds it from the log.`,
      );
    const found = await log.eventAt(start.position);
    if (found?.id !== start.event_id || recordedHash(found) !== start.event_hash)
      throw otherEnd(start);
    return start;
  }

  /** The event of the last leaf, counted from the start of the last bundle: each event has one leaf. */
  async function countToEnd(head: SignedHead): Promise<StoredEvent | undefined> {
    const bundle = Math.floor((head.size - 1) / TILE_WIDTH);
    const start = await startOf(head, bundle);
    const count = head.size - bundle * TILE_WIDTH;
    return (await readAfter(log, start?.position, count))[count - 1];
  }

  let known: SignedEnd | undefined;

  /** The end of a tree that has grown since it was signed; an earlier one where events there were changed. */
  async function findEnd(head: SignedHead): Promise<SignedEnd> {
    try {
      const last = await countToEnd(head);
      if (last && (await isSigned(head, head.size - 1, recordedHash(last))))
        return { head, last: { position: last.position, event_id: last.id } };
      throw proofInvalidError(
        `The event log has other events than the last leaves of the ${head.size} that were signed. Restore both from one backup.`,
      );
    } catch (error) {
      if (known?.head.treeId !== head.treeId || !isTurnlogError(error, 'proof_invalid'))
        throw error;
      return known;
    }
  }

  /** The end by the state of a tree of exactly the signed size. */
  async function endOfState(
    head: SignedHead,
    { checkpoint }: TreeState,
  ): Promise<SignedEnd['last']> {
    if (!checkpoint || !(await isSigned(head, head.size - 1, checkpoint.event_hash)))
      throw lostState(
        `The state of the transparency log names the event ${checkpoint?.event_id}, which is not that of its last leaf.`,
      );
    const { position, event_id, event_hash } = checkpoint;
    const found = await log.eventAt(position);
    if (found?.id !== event_id) throw otherEnd(checkpoint);
    // An event that was changed in its place damages its stream alone.
    if (recordedHash(found) !== event_hash && (await countToEnd(head))?.position !== position)
      throw otherEnd(checkpoint);
    return checkpoint;
  }

  return async (head) => {
    const state = await head.reader.state();
    if (state.size < head.size)
      throw lostState(
        `The transparency log has ${state.size} leaves, and ${head.size} were signed.`,
      );
    if (known?.head === head) return known;
    if (head.size === 0) known = { head, last: undefined };
    else if (state.size === head.size) known = { head, last: await endOfState(head, state) };
    else known = await findEnd(head);
    return known;
  };
}
