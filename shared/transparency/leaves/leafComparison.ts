/**
 * Compares events with their leaves in the transparency log when their stream is read. Anyone who
 * can write to the log can replace an event and recompute the chain of its stream, but not the
 * signed tree.
 */
import { LRUCache } from 'lru-cache';
import { decodeEvent } from '../../eventlog/codec.ts';
import { chainFault, writtenHash, type Link } from '../../eventlog/hashChain.ts';
import { logIdAt, readLogIdentity } from '../../eventlog/identity/logIdentity.ts';
import type { StreamFlaw } from '../../eventlog/reading/streamDamage.ts';
import {
  isTurnlogError,
  proofInvalidError,
  storeUnavailableError,
} from '../../lib/errors/turnlogError.ts';
import type { Checkpoint, EncodedEvent, EventLog, StoredEvent } from '../../ports/eventStore.ts';
import { recordedHash } from '../proof/nameChange.ts';
import type { TileReader, TreeState } from '../tileStore.ts';
import { bundleOf, isLeafOf, leafIndexIn } from '../tlog/leaf.ts';
import { cachedTree, type TreeFiles } from './cachedTree.ts';
import { createSignedLeaves } from './signedLeaves.ts';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';

/** The streams whose newest appended or compared event is remembered. */
const MAX_STREAMS = 20_000;
/** How long the size of the tree is remembered. Newer events are compared at a later read. */
const STATE_MS = 1_000;

export interface LeafComparison {
  /** Remembers the last event of an append of this process. */
  appended(stream: string, revision: number, events: readonly EncodedEvent[]): void;
  /**
   * True for consecutive events that this process has appended, up to the last one of its last
   * append, by their hashes. Does not look at their contents.
   */
  areOwn(events: readonly StoredEvent[]): boolean;
  /**
   * The flaw of the first of consecutive events of a stream that does not fit its hash or its leaf,
   * or whose leaf is in a file that is missing or damaged. Undefined when all fit, as far as the tree
   * covers them. Throws `store_unavailable` while the tree has lost its state or where its bundles
   * begin, and where it can't be read. A store that is away is passed over unless `mustCompare`.
   */
  findFlaw(
    events: readonly StoredEvent[],
    options?: { mustCompare: boolean },
  ): Promise<StreamFlaw | undefined>;
  /**
   * The revision of the newest event of the stream that this process has appended or compared, -1
   * for none. To be read before the stream is.
   */
  newestKnown(stream: string): number;
  /**
   * The flaw of a stream that ends before the event that was known when its end was read. Both are
   * revisions, -1 for none. Undefined otherwise. Throws as `findFlaw`.
   */
  findMissing(
    stream: string,
    end: { known: number; newest: number },
  ): Promise<StreamFlaw | undefined>;
  /**
   * What the tree has lost, or that its store is away, in sentences, until the comparison that failed
   * succeeds: each call tries it again, and does not wait for it.
   */
  trouble(): string | undefined;
}

/** An event of a stream that is known to be as it was recorded. */
interface Known {
  revision: number;
  hash: string;
  /**
   * The first of the consecutive events up to this one that were appended or compared. An event that a
   * forger has appended to others has a leaf, too.
   */
  from: number;
  /** The first of the consecutive events up to this one that this process has appended. */
  ownFrom: number;
}

const flawOf = ({ revision }: StoredEvent, what: string): StreamFlaw => ({
  reason: `the event at revision ${revision} ${what}`,
  revision,
});

const CHANGED = 'is not the one that was recorded';
/** The reason for an event without a leaf. */
export const NO_LEAF =
  'is not the one that was recorded: the transparency log has no leaf with its hash where it stands';
/** The reason for an event whose leaf was put into the files of the tree. */
const NOT_SIGNED =
  'is not the one that was recorded: its leaf in the transparency log does not lead to what was signed';
const FITS = 'fits';

const otherEnd = ({ event_id, position }: Checkpoint): Error =>
  proofInvalidError(
    `The transparency log ends with the event ${event_id} at ${position}, which the event log does not have there. Restore both from one backup.`,
  );

/** What the first of consecutive events claims to follow. */
const linkBefore = ({ revision, metadata }: StoredEvent): Link | undefined =>
  revision === 0
    ? undefined
    : {
        revision: revision - 1,
        hash: (JSON.parse(metadata) as { prev_hash: string }).prev_hash,
      };

/**
 * The event can't be decoded, does not fit its own content, or does not follow the one before it. The
 * errors of decoding are about its content.
 */
export function chainFlaw(events: readonly StoredEvent[]): StreamFlaw | undefined {
  let previous: Link | undefined;
  for (const event of events) {
    const { revision } = event;
    try {
      previous ??= linkBefore(event);
      let hash = writtenHash(event, previous);
      if (hash === undefined) {
        const recorded = decodeEvent(event);
        const fault = chainFault(recorded, previous);
        if (fault !== undefined) return flawOf(event, `does not fit: ${fault}`);
        hash = recorded.metadata.hash;
      }
      previous = { revision, hash };
    } catch (error) {
      return flawOf(event, `can't be decoded: ${(error as Error).message}`);
    }
  }
  return undefined;
}

/** Creates the comparison of a log with its tree. */
export function createLeafComparison(
  log: Pick<EventLog, 'eventAt' | 'firstEvent' | 'readStream'>,
  tiles: TileReader,
): LeafComparison {
  const signed = createSignedLeaves(log, tiles);
  const known = new LRUCache<string, Known>(entriesUpTo(MAX_STREAMS));
  let tree: TreeFiles = cachedTree(tiles);
  let state: TreeState = { size: 0, checkpoint: undefined };
  let stateAt = -Infinity;
  let refreshing: Promise<TreeState> | undefined;
  /** The end of the tree that was found to be its last leaf. */
  let checkedEnd: TreeState['checkpoint'];
  /** The comparison that failed because the tree has lost a part, and why. */
  let lost: { reason: string; again: () => Promise<unknown> } | undefined;

  /** Throws `proof_invalid` for another log than this one: only its own events say that it is restored. */
  async function requireLogId({ log_id, position }: Checkpoint): Promise<void> {
    const identity = await readLogIdentity(log);
    if (!identity || logIdAt(identity, position) !== log_id)
      throw proofInvalidError(
        `The state of the transparency log is of the log ${log_id}, which is not this one. Put its files back from a backup.`,
      );
  }

  async function refresh(): Promise<TreeState> {
    await signed.refresh();
    // Before the state is read, which may be of a moment before a larger checkpoint.
    const least = signed.size();
    const next = await tiles.state();
    if (next.size < least)
      throw proofInvalidError(
        `The transparency log has ${next.size} leaves, and ${least} were signed. Put its files back from a backup.`,
      );
    const [logId, nextId] = [state.checkpoint?.log_id, next.checkpoint?.log_id];
    if (next.checkpoint && logId !== nextId) await requireLogId(next.checkpoint);
    if (logId !== nextId) tree = cachedTree(tiles);
    // A log that was declared restored begins another tree.
    if (logId !== undefined && logId !== nextId) known.clear();
    state = next;
    stateAt = performance.now();
    return state;
  }

  /** The state of the tree, which may be a second old where it does not cover the event. */
  async function stateFor({ position }: StoredEvent): Promise<TreeState> {
    const covers = state.checkpoint !== undefined && position <= state.checkpoint.position;
    if (covers || performance.now() - stateAt < STATE_MS) return state;
    return (refreshing ??= refresh().finally(() => (refreshing = undefined)));
  }

  /** The bundle of the event's leaf. Throws `proof_invalid` where it is not known where bundles begin. */
  const bundleFor = (files: TreeFiles, { position }: StoredEvent): Promise<number> =>
    bundleOf(files, position, state.size);

  /** `FITS`, or how the event does not fit. Throws `proof_invalid` for lost entries and tiles. */
  async function fitIn(files: TreeFiles, event: StoredEvent, bundle: number): Promise<string> {
    const { size } = state;
    const hash = recordedHash(event);
    const index = await leafIndexIn(files, { bundle, size }, hash);
    if (index === undefined) return NO_LEAF;
    const leads = await signed.leads(files, { index, size }, hash);
    return leads === false ? NOT_SIGNED : FITS;
  }

  /** `FITS`, or how the event does not fit its leaf, in the rest of a sentence. */
  async function fitOf(files: TreeFiles, event: StoredEvent): Promise<string> {
    const bundle = await bundleFor(files, event);
    try {
      return await fitIn(files, event, bundle);
    } catch (error) {
      if (!isTurnlogError(error, 'proof_invalid')) throw error;
      // It may hold bytes that were damaged and are repaired.
      if (files === tree) tree = cachedTree(tiles);
      lost = { reason: error.message, again: () => fitIn(tiles, event, bundle) };
      return `can't be compared with its leaf: ${error.message}`;
    }
  }

  /**
   * The end of the tree, looked at again without any cache; undefined while the tree is empty. Throws
   * `proof_invalid` where the log has another event there, because either of them was changed.
   */
  async function endOfTree(): Promise<TreeState['checkpoint']> {
    const { checkpoint } = await refresh();
    if (checkpoint && (await log.eventAt(checkpoint.position))?.id !== checkpoint.event_id)
      throw otherEnd(checkpoint);
    return checkpoint;
  }

  /**
   * True if the tree has a leaf of the event, by its state. Throws `proof_invalid` where the state does
   * not name the event of the last leaf, or another position: it would hide later events.
   */
  async function isCovered({ position }: StoredEvent): Promise<boolean> {
    const { size, checkpoint } = state;
    if (!checkpoint) return false;
    if (position <= checkpoint.position) return true;
    if (checkedEnd === checkpoint) return false;
    if (!(await isLeafOf(tiles, { index: size - 1, size }, checkpoint.event_hash)))
      throw proofInvalidError(
        `The state of the transparency log names the event ${checkpoint.event_id}, which is not that of its last leaf. Put its files back from a backup.`,
      );
    const end = await log.eventAt(checkpoint.position);
    if (end?.id !== checkpoint.event_id || recordedHash(end) !== checkpoint.event_hash)
      throw otherEnd(checkpoint);
    checkedEnd = checkpoint;
    return false;
  }

  /** Throws as long as a comparison of the event has to wait for a part of the tree. */
  async function requireBundle(event: StoredEvent): Promise<void> {
    await endOfTree();
    if (await isCovered(event)) await bundleFor(tiles, event);
  }

  /** Looks again at what seems not to fit. */
  async function fitAgain(event: StoredEvent): Promise<string> {
    await endOfTree();
    return (await isCovered(event)) ? fitOf(tiles, event) : FITS;
  }

  /**
   * Throws `store_unavailable` where the tree has lost what a comparison needs, or it can't be read:
   * otherwise events could be rewritten once a file is deleted or made unreadable. `again` fails for
   * as long. A store that is away is passed over unless `mustCompare`.
   */
  function passOver(error: unknown, again: () => Promise<unknown>, mustCompare = false): void {
    const { message } = error as Error;
    const isAway = isTurnlogError(error) && error.isAway;
    const reason = isAway
      ? `Events are not being compared with the transparency log. ${message}`
      : message;
    lost = { reason, again };
    if (isAway && mustCompare) throw error;
    if (isAway) return;
    throw storeUnavailableError(
      `Events can't be compared with the transparency log. ${message}`,
      error,
    );
  }

  /** The flaw of the first event that does not fit its leaf, and the last event that does. */
  async function compare(
    events: readonly StoredEvent[],
  ): Promise<{ flaw?: StreamFlaw; compared?: StoredEvent }> {
    let compared: StoredEvent | undefined;
    for (const event of events) {
      await stateFor(event);
      if (!(await isCovered(event))) break;
      if ((await fitOf(tree, event)) === FITS) compared = event;
      else {
        const fit = await fitAgain(event);
        if (fit !== FITS) return { flaw: flawOf(event, fit) };
      }
    }
    return compared ? { compared } : {};
  }

  const newestKnown = (stream: string): number => known.peek(stream)?.revision ?? -1;

  /** Remembers that all events from a revision up to this one are as they were recorded. */
  function remember(event: StoredEvent, from: number): void {
    const { stream, revision } = event;
    if (newestKnown(stream) < revision)
      known.set(stream, { revision, hash: recordedHash(event), from, ownFrom: revision + 1 });
  }

  /** Compares events of a stream, all but those that are known at `at`, -1 for none. */
  async function compareUnknown(
    events: readonly StoredEvent[],
    at: number,
  ): Promise<StreamFlaw | undefined> {
    const first = events[0]!.revision;
    const { stream } = events[0]!;
    const found = at < 0 ? undefined : known.get(stream);
    const later = events.slice(at + 1);
    const earlier = found ? events.filter(({ revision }) => revision < found.from) : [];
    const before = await compare(earlier);
    if (before.flaw) return before.flaw;
    const { flaw, compared } = await compare(later);
    if (flaw) return flaw;
    // Only as far as the tree covers them.
    if (found && before.compared === earlier.at(-1)) found.from = Math.min(found.from, first);
    if (compared) remember(compared, found?.from ?? first);
    return undefined;
  }

  /** The event at the known revision of the stream. */
  const knownIn = (events: readonly StoredEvent[]): StoredEvent | undefined =>
    events.find(({ stream, revision }) => revision === known.get(stream)?.revision);

  /** The index of the known event, -1 without one; undefined when another event stands there. */
  function indexOfKnown(events: readonly StoredEvent[]): number | undefined {
    const found = knownIn(events);
    if (!found) return -1;
    return recordedHash(found) === known.get(found.stream)?.hash
      ? events.indexOf(found)
      : undefined;
  }

  return {
    appended(stream, revision, events) {
      const last = events.at(-1);
      if (!last) return;
      const first = revision - events.length + 1;
      const before = known.get(stream);
      const continued = before?.revision === first - 1 ? before : { from: first, ownFrom: first };
      const { from, ownFrom } = continued;
      known.set(stream, { revision, hash: recordedHash(last), from, ownFrom });
    },
    areOwn(events) {
      const [first, last] = [events[0], events.at(-1)];
      if (!first || !last) return true;
      const own = known.get(first.stream);
      return (
        own !== undefined &&
        first.revision >= own.ownFrom &&
        last.revision === own.revision &&
        recordedHash(last) === own.hash
      );
    },
    async findFlaw(events, { mustCompare } = { mustCompare: false }) {
      const last = events.at(-1);
      if (!last) return undefined;
      const flaw = chainFlaw(events);
      if (flaw) return flaw;
      try {
        const at = indexOfKnown(events) ?? (await refresh(), indexOfKnown(events));
        if (at === undefined)
          return (await compare(events)).flaw ?? flawOf(knownIn(events)!, CHANGED);
        return await compareUnknown(events, at);
      } catch (error) {
        passOver(error, () => requireBundle(last), mustCompare);
      }
      return undefined;
    },
    newestKnown,
    async findMissing(stream, end) {
      const { newest } = end;
      // Another tree forgets what was known.
      const isShorter = (): boolean => Math.min(end.known, newestKnown(stream)) > newest;
      if (!isShorter()) return undefined;
      const revision = newest + 1;
      try {
        if (!(await endOfTree()) || !isShorter()) return undefined;
      } catch (error) {
        passOver(error, endOfTree);
        return undefined;
      }
      const reason = newest < 0 ? 'its events are gone' : `revision ${revision} is missing`;
      return { reason, revision };
    },
    trouble() {
      const found = lost;
      found?.again().then(
        () => void (lost = lost === found ? undefined : lost),
        // It is as lost as before.
        () => undefined,
      );
      return found?.reason;
    },
  };
}
