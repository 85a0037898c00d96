/**
 * Compares events with their leaves in the transparency log when their stream is read. Anyone who
 * can write to the log can replace an event and recompute the chain of its stream, but not the
 * signed tree.
 */
import { LRUCache } from 'lru-cache';
import { decodeEvent } from '../../eventlog/codec.ts';
import { chainFault, writtenHash, type Link } from '../../eventlog/hashChain.ts';
import type { StreamFlaw } from '../../eventlog/reading/streamDamage.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import type { EncodedEvent, EventLog, StoredEvent } from '../../ports/eventStore.ts';
import { recordedHash } from '../proof/nameChange.ts';
import type { TileReader, TreeState } from '../tileStore.ts';
import { bundleOf, leafIndexIn } from '../tlog/leaf.ts';
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
   * The flaw of the first of consecutive events of a stream that does not fit its hash or its leaf.
   * Undefined when all fit, as far as the tree covers them and can be read. Entries and tiles that
   * are missing or damaged are a flaw unless `passesLostTiles`.
   */
  findFlaw(
    events: readonly StoredEvent[],
    options?: { passesLostTiles: boolean },
  ): Promise<StreamFlaw | undefined>;
  /**
   * The revision of the newest event of the stream that this process has appended or compared, -1
   * for none. To be read before the stream is.
   */
  newestKnown(stream: string): number;
  /**
   * The flaw of a stream that ends before the event that was known when its end was read. Both are
   * revisions, -1 for none. Undefined otherwise, and for another log than the tree's.
   */
  findMissing(
    stream: string,
    end: { known: number; newest: number },
  ): Promise<StreamFlaw | undefined>;
}

/** An event of a stream that is known to be as it was recorded. */
interface Known {
  revision: number;
  hash: string;
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

/** The fit of an event in the rest of a sentence; `isLost` where entries or tiles are. */
interface Fit {
  what: string;
  isLost?: true;
}

/** The event does not fit its own content, or does not follow the one before it. */
export function chainFlaw(events: readonly StoredEvent[]): StreamFlaw | undefined {
  let previous: Link | undefined;
  for (const event of events) {
    const { revision, metadata } = event;
    previous ??=
      revision === 0
        ? undefined
        : {
            revision: revision - 1,
            hash: (JSON.parse(metadata) as { prev_hash: string }).prev_hash,
          };
    let hash = writtenHash(event, previous);
    if (hash === undefined) {
      const recorded = decodeEvent(event);
      const fault = chainFault(recorded, previous);
      if (fault !== undefined) return flawOf(event, `does not fit: ${fault}`);
      hash = recorded.metadata.hash;
    }
    previous = { revision, hash };
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

  async function refresh(): Promise<TreeState> {
    await signed.refresh();
    const next = await tiles.state();
    const [logId, nextId] = [state.checkpoint?.log_id, next.checkpoint?.log_id];
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

  /** `FITS`, or how the event does not fit its leaf. */
  async function fitOf(files: TreeFiles, event: StoredEvent): Promise<Fit> {
    const { size } = state;
    const hash = recordedHash(event);
    // An index of bundles that is lost is no flaw of a stream: the prover rebuilds it from the log.
    const bundle = await bundleOf(files, event.position, size);
    try {
      const index = await leafIndexIn(files, { bundle, size }, hash);
      if (index === undefined) return { what: NO_LEAF };
      const leads = await signed.leads(files, { index, size }, hash);
      return { what: leads === false ? NOT_SIGNED : FITS };
    } catch (error) {
      if (!isTurnlogError(error, 'proof_invalid')) throw error;
      return { what: `can't be compared with its leaf: ${error.message}`, isLost: true };
    }
  }

  /**
   * The end of the tree, looked at again without any cache; undefined while the tree is empty or of
   * another log: the log before a restoration, or one that was replaced, which followers of the log
   * report.
   */
  async function endOfTree(): Promise<TreeState['checkpoint']> {
    const { checkpoint } = await refresh();
    const isOfLog =
      checkpoint && (await log.eventAt(checkpoint.position))?.id === checkpoint.event_id;
    return isOfLog ? checkpoint : undefined;
  }

  /** Looks again at what seems not to fit. */
  async function fitAgain(event: StoredEvent): Promise<Fit> {
    const end = await endOfTree();
    return end && event.position <= end.position ? fitOf(tiles, event) : { what: FITS };
  }

  /** The flaw of the first event that does not fit its leaf, and the last event that does. */
  async function compare(
    events: readonly StoredEvent[],
    passesLostTiles: boolean,
  ): Promise<{ flaw?: StreamFlaw; compared?: StoredEvent }> {
    let compared: StoredEvent | undefined;
    for (const event of events) {
      const { checkpoint } = await stateFor(event);
      if (!checkpoint || event.position > checkpoint.position) break;
      if ((await fitOf(tree, event)).what === FITS) compared = event;
      else {
        const { what, isLost } = await fitAgain(event);
        if (what !== FITS && !(isLost && passesLostTiles)) return { flaw: flawOf(event, what) };
      }
    }
    return compared ? { compared } : {};
  }

  const newestKnown = (stream: string): number => known.peek(stream)?.revision ?? -1;

  function remember(event: StoredEvent): void {
    const { stream, revision } = event;
    if (newestKnown(stream) < revision)
      known.set(stream, { revision, hash: recordedHash(event), ownFrom: revision + 1 });
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
      const ownFrom = before?.revision === first - 1 ? before.ownFrom : first;
      known.set(stream, { revision, hash: recordedHash(last), ownFrom });
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
    async findFlaw(events, { passesLostTiles } = { passesLostTiles: false }) {
      const last = events.at(-1);
      if (!last) return undefined;
      const flaw = chainFlaw(events);
      if (flaw) return flaw;
      try {
        const at = indexOfKnown(events) ?? (await refresh(), indexOfKnown(events));
        // The chain leads from a known event to all before it.
        const { flaw: missing, compared } = await compare(
          events.slice((at ?? -1) + 1),
          passesLostTiles,
        );
        if (missing) return missing;
        if (at === undefined) return flawOf(knownIn(events)!, CHANGED);
        if (compared) remember(compared);
      } catch (error) {
        // Health and `audit verify` report a tree that can't be read.
        if (!isTurnlogError(error)) throw error;
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
        if (!isTurnlogError(error)) throw error;
        return undefined;
      }
      const reason = newest < 0 ? 'its events are gone' : `revision ${revision} is missing`;
      return { reason, revision };
    },
  };
}
