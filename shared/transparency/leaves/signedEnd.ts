import { recordedHash } from '../../eventlog/hashChain.ts';
import {
  isTurnlogError,
  logChangedError,
  proofInvalidError,
  storeUnavailableError,
} from '../../lib/errors/turnlogError.ts';
import type { Checkpoint, EventLog, Position, StoredEvent } from '../../ports/eventStore.ts';
import type { SignedHead } from '../ownTree.ts';
import type { TreeState } from '../tileStore.ts';
import { parseLeafEntry } from '../tlog/leaf.ts';
import { readEntries } from '../tlog/readTiles.ts';
import { TILE_WIDTH } from '../tlog/tiles.ts';
import type { LeadsToHead } from './signedLeaves.ts';

/** Events of the last bundle that are read at once: each may have 1 MiB. */
const BATCH_SIZE = 16;
/** The most events that are read, where some were inserted. */
const MAX_EVENTS = 4 * TILE_WIDTH;
/** How long reading a batch of them may take. */
const BATCH_MS = 10_000;

/** A tree up to a signed checkpoint. */
type SignedTree = Pick<SignedHead, 'treeId' | 'size' | 'root' | 'reader'>;

/** How far a tree goes. Later events are not compared. */
export interface SignedEnd {
  /** The last event that the checkpoint covers; undefined for that of an empty tree. */
  last: Pick<Checkpoint, 'position' | 'event_id'> | undefined;
  /** The tree by its state, which is not signed: it may have more leaves than the checkpoint covers. */
  stored: TreeState;
}

export type ComparedLog = Pick<EventLog, 'eventAt' | 'firstEvent' | 'readStream' | 'subscribe'>;

/**
 * The error for a log that does not continue after the end of the tree: it is another log or an older copy, or
 * the event at the end was moved there.
 */
export function treeEndError(
  { event_id, position }: Pick<Checkpoint, 'event_id' | 'position'>,
  found: StoredEvent | undefined,
): Error {
  const sentence = `The transparency log ends with the event ${event_id} at ${position}, which the event log does not have there. Restore both from one backup.`;
  return found?.id === event_id ? proofInvalidError(sentence) : logChangedError(sentence);
}

/** The hash in an entry; undefined for one that was changed to something else, or is lost. */
function hashInEntry(entry: Uint8Array | undefined): string | undefined {
  try {
    return entry && parseLeafEntry(entry).hash;
  } catch {
    return undefined;
  }
}

const lostState = (reason: string): Error =>
  proofInvalidError(`${reason} Put its files back from a backup.`);

/** The start of counting events: a position, and the leaf of the event after it. */
interface Start {
  from: number;
  after: Position | undefined;
}

/** An event of the log, without its content. */
interface Place extends Pick<Checkpoint, 'position' | 'event_id'> {
  hash: string;
}

/** The events of the log after a position: `count` of them and those up to `until`, if there are so many. */
async function readAfter(
  log: ComparedLog,
  after: Position | undefined,
  { count, until = '' }: { count: number; until: string | undefined },
): Promise<Place[]> {
  const places: Place[] = [];
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), BATCH_MS).unref();
  const { signal } = late;
  const batchSize = Math.min(count, BATCH_SIZE);
  try {
    for await (const { events, caughtUp } of log.subscribe({ after, batchSize, signal })) {
      timer.refresh();
      for (const event of events)
        places.push({ position: event.position, event_id: event.id, hash: recordedHash(event) });
      const isThere = places.length >= count && places.at(-1)!.position >= until;
      if (caughtUp || isThere || places.length >= MAX_EVENTS) return places;
    }
  } finally {
    clearTimeout(timer);
  }
  throw storeUnavailableError('The event log does not answer where the transparency log ends.');
}

/**
 * Returns a function that finds the last event under a signed head. Positions are not signed: an event could
 * be moved, or rewritten and given a leaf behind those that were signed. The events of the last bundle are
 * therefore compared with their leaves. The function throws `proof_invalid` where the tree has fewer leaves
 * than were signed, does not know where its last bundle begins, or where events of the log were moved,
 * `log_changed` where it does not have the event, and `store_unavailable`.
 */
export function createEndFinder(
  log: ComparedLog,
  leads: LeadsToHead,
): (head: SignedTree) => Promise<SignedEnd> {
  let lastEnd: (Pick<SignedTree, 'treeId' | 'size'> & Pick<SignedEnd, 'last'>) | undefined;
  const isSigned = (head: SignedTree, index: number, hash: string): Promise<boolean> =>
    leads(head.reader, head, { index, hash });

  /** The start of a bundle by the index of bundles, whose leaf before is signed. */
  async function startOf(head: SignedTree, bundle: number): Promise<Checkpoint> {
    const start = await head.reader.beforeBundle(bundle);
    if (start && (await isSigned(head, bundle * TILE_WIDTH - 1, start.event_hash))) return start;
    throw proofInvalidError(
      `The transparency log does not know where bundle ${bundle} begins: its index of bundles is damaged. A running server rebuilds it from the log.`,
    );
  }

  /** The event before the last bundle; of an earlier one where that event was changed or is gone. */
  async function startBefore(head: SignedTree, last: number): Promise<Start> {
    let event: StoredEvent | undefined;
    for (let bundle = last; bundle > last - MAX_EVENTS / TILE_WIDTH; bundle -= 1) {
      if (bundle === 0) return { from: 0, after: undefined };
      const start = await startOf(head, bundle);
      event = await log.eventAt(start.position);
      if (event && event.id !== start.event_id) throw treeEndError(start, event);
      if (event && recordedHash(event) === start.event_hash)
        return { from: bundle * TILE_WIDTH, after: start.position };
    }
    throw treeEndError(await startOf(head, last), event);
  }

  /** The end that was found before, or the start of the last bundle. Another call may have found a later end. */
  async function startFor(head: SignedTree): Promise<Start> {
    const bundle = Math.floor((head.size - 1) / TILE_WIDTH);
    const before = lastEnd?.treeId === head.treeId ? lastEnd : undefined;
    const isBefore = before && before.size > bundle * TILE_WIDTH && before.size < head.size;
    return isBefore && before.last
      ? { from: before.size, after: before.last.position }
      : startBefore(head, bundle);
  }

  /**
   * Returns a function that finds the leaf of an event in the last bundle, -1 for none. The entries say
   * where it may be; a leaf whose entry was changed or lost is compared with each event.
   */
  async function createLeafIndex(head: SignedTree): Promise<(hash: string) => Promise<number>> {
    const { size, reader } = head;
    const bundle = Math.floor((size - 1) / TILE_WIDTH);
    const entries = await readEntries(reader, bundle, size).catch((error: unknown) => {
      if (isTurnlogError(error, 'proof_invalid')) return [];
      throw error;
    });
    const leaves = new Map<string, number>();
    const withoutEntry: number[] = [];
    for (let index = bundle * TILE_WIDTH; index < size; index += 1) {
      const hash = hashInEntry(entries[index % TILE_WIDTH]);
      if (hash === undefined || !(await isSigned(head, index, hash))) withoutEntry.push(index);
      // Events of other programs have none.
      else if (hash !== '') leaves.set(hash, index);
    }
    return async (hash) => {
      const leaf = leaves.get(hash);
      if (leaf !== undefined) return leaf;
      for (const index of withoutEntry) if (await isSigned(head, index, hash)) return index;
      return -1;
    };
  }

  /**
   * The event of the last leaf, where the state says that it is, or else where the events of the last
   * leaves are. Events that were changed, deleted or inserted damage their streams. No event with a leaf
   * may follow the last one: one of the two was moved.
   */
  async function lastIn(
    head: SignedTree,
    places: readonly Place[],
    named: Checkpoint | undefined,
  ): Promise<Place> {
    const indexOf = await createLeafIndex(head);
    let last: Place | undefined;
    let highest = -1;
    let isBehind = false;
    for (const place of places) {
      const index = await indexOf(place.hash);
      const isLast = named
        ? place.position === named.position && place.event_id === named.event_id
        : index > highest;
      if (isLast) [last, highest] = [place, index];
      else if (last && index >= 0) isBehind = true;
    }
    if (last && !isBehind) return last;
    throw named
      ? treeEndError(named, await log.eventAt(named.position))
      : proofInvalidError(
          `The event log has other events than the last leaves of the ${head.size} that were signed. Restore both from one backup.`,
        );
  }

  async function findLast(head: SignedTree, named: Checkpoint | undefined): Promise<Place> {
    const { from, after } = await startFor(head);
    const count = head.size - from;
    const places = await readAfter(log, after, { count, until: named?.position });
    let fitting = 0;
    while (
      fitting < count &&
      places[fitting] &&
      (await isSigned(head, from + fitting, places[fitting]!.hash))
    )
      fitting += 1;
    const last = places[count - 1];
    const isNamed = !named || last?.position === named.position;
    return fitting === count && last && isNamed ? last : lastIn(head, places, named);
  }

  /** The event of the last leaf by the state of a tree of exactly the signed size. */
  async function requireNamed(head: SignedTree, { checkpoint }: TreeState): Promise<Checkpoint> {
    if (checkpoint && (await isSigned(head, head.size - 1, checkpoint.event_hash)))
      return checkpoint;
    throw lostState(
      `The state of the transparency log names the event ${checkpoint?.event_id}, which is not that of its last leaf.`,
    );
  }

  return async (head) => {
    const stored = await head.reader.state();
    if (stored.size < head.size)
      throw lostState(
        `The transparency log has ${stored.size} leaves, and ${head.size} were signed.`,
      );
    const { treeId, size } = head;
    if (lastEnd?.treeId === treeId && lastEnd.size === size) return { last: lastEnd.last, stored };
    const named =
      head.size > 0 && stored.size === head.size ? await requireNamed(head, stored) : undefined;
    const last = head.size === 0 ? undefined : await findLast(head, named);
    lastEnd = { treeId, size, last };
    return { last, stored };
  };
}
