/**
 * Compares events with their leaves in the transparency log when their stream is read. An
 * account that can write to the log can replace an event and recompute the chain of its stream, but
 * not the signed tree.
 */
import { LRUCache } from 'lru-cache';
import { decodeEvent } from '../../eventlog/codec.ts';
import { findChainFault, writtenHash, type Link, recordedHash } from '../../eventlog/hashChain.ts';
import { parseAccountId } from '../../eventlog/reading/streamOwner.ts';
import type { StreamFlaw } from '../../eventlog/reading/streamDamage.ts';
import { createPause, type Pause } from '../../lib/concurrency/yieldToEventLoop.ts';
import { isTurnlogError, storeUnavailableError } from '../../lib/errors/turnlogError.ts';
import type { EncodedEvent, StoredEvent } from '../../ports/eventStore.ts';
import type { OwnTree, SignedHead } from '../ownTree.ts';
import { findBundle, findLeafIndexInBundle } from '../tlog/leaf.ts';
import { cachedTree, type TreeFiles } from './cachedTree.ts';
import { createEndFinder, treeEndError, type ComparedLog, type SignedEnd } from './signedEnd.ts';
import { createSignedLeaves } from './signedLeaves.ts';
import { entriesUpTo } from '../../lib/memory/entriesUpTo.ts';

/** The streams whose newest appended or compared event is remembered. */
const MAX_STREAMS = 5_000;
/** How long the end of the tree is remembered. Newer events are compared at a later read. */
const END_MS = 1_000;

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
   * begin, and where it can't be read. An unavailable store is passed over unless `mustCompare`.
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
   * Describes the losses of the tree, or that its store is unavailable, until the comparison that failed
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

/** The first `size` leaves of a tree. */
interface ComparedTree {
  head: SignedHead;
  size: number;
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

/** The predecessor that the first of consecutive events names. */
const linkBefore = ({ revision, metadata }: StoredEvent): Link | undefined =>
  revision === 0
    ? undefined
    : {
        revision: revision - 1,
        hash: (JSON.parse(metadata) as { prev_hash: string }).prev_hash,
      };

/**
 * The link that the next event continues, or the flaw of an event that can't be decoded, or does not
 * fit its own content or the one before it. The errors of decoding are about its content.
 */
function checkLink(event: StoredEvent, before?: Link): Link | StreamFlaw {
  const { revision } = event;
  try {
    const previous = before ?? linkBefore(event);
    const written = writtenHash(event, previous);
    if (written !== undefined) return { revision, hash: written };
    const recorded = decodeEvent(event);
    const fault = findChainFault(recorded, previous);
    return fault === undefined
      ? { revision, hash: recorded.metadata.hash }
      : flawOf(event, `does not fit: ${fault}`);
  } catch (error) {
    return flawOf(event, `can't be decoded: ${(error as Error).message}`);
  }
}

/** The flaw of an event that can't be decoded or does not fit its own content. */
export function findContentFlaw(event: StoredEvent): StreamFlaw | undefined {
  const checked = checkLink(event);
  return 'reason' in checked ? checked : undefined;
}

/** The first flaw of consecutive events of a stream. */
async function chainFlaw(
  events: readonly StoredEvent[],
  pause: Pause,
): Promise<StreamFlaw | undefined> {
  let previous: Link | undefined;
  for (const event of events) {
    await pause();
    const checked = checkLink(event, previous);
    if ('reason' in checked) return checked;
    previous = checked;
  }
  return undefined;
}

/** Creates the comparison of a log with its tree. */
export function createLeafComparison(log: ComparedLog, tree: OwnTree): LeafComparison {
  const leads = createSignedLeaves();
  const findEnd = createEndFinder(log, leads);
  const ranges = new LRUCache<string, Known>(entriesUpTo(MAX_STREAMS));
  let signed: (SignedEnd & { head: SignedHead }) | undefined;
  /** Reads the tree of `signed`. */
  let cached: TreeFiles = cachedTree(tree);
  let endAt = -Infinity;
  let refreshing: Promise<void> | undefined;
  /** The comparison that failed because the tree has lost a part, and why. */
  let lost: { reason: string; again: () => Promise<unknown> } | undefined;

  async function refresh(): Promise<void> {
    const head = await tree.head();
    const next = head && { head, ...(await findEnd(head)) };
    const before = signed?.head;
    // Another call may have found a later end meanwhile.
    if (before && head && before.treeId === head.treeId && before.size > head.size) return;
    if (head && head.origin !== before?.origin) cached = cachedTree(head.reader);
    // A log that was declared restored has no tree at first, and then another one.
    if (before && before.logId !== head?.logId) ranges.clear();
    signed = next;
    endAt = performance.now();
  }

  /** The end, which may be a second old where it is before the event. */
  async function endFor(event: StoredEvent): Promise<void> {
    if (isSigned(event) || performance.now() - endAt < END_MS) return;
    await (refreshing ??= refresh().finally(() => (refreshing = undefined)));
  }

  /** True if the event has a leaf under the newest checkpoint. */
  const isSigned = ({ position }: StoredEvent): boolean =>
    signed?.last !== undefined && position <= signed.last.position;

  /** The tree that has a leaf of the event, signed or not; undefined without one. */
  function treeOver(event: StoredEvent): ComparedTree | undefined {
    if (!signed) return undefined;
    const { head, stored } = signed;
    if (isSigned(event)) return { head, size: head.size };
    const isStored = stored.checkpoint && event.position <= stored.checkpoint.position;
    return isStored ? { head, size: stored.size } : undefined;
  }

  /** `FITS`, or how the event does not fit. Throws `proof_invalid` for lost entries and tiles. */
  async function fitIn(
    files: TreeFiles,
    event: StoredEvent,
    { head, size, bundle }: ComparedTree & { bundle: number },
  ): Promise<string> {
    const hash = recordedHash(event);
    const index = await findLeafIndexInBundle(files, { bundle, size }, hash);
    if (index === undefined) return NO_LEAF;
    if (index >= head.size) return FITS;
    return (await leads(files, head, { index, hash })) ? FITS : NOT_SIGNED;
  }

  /**
   * `FITS`, or how the event does not fit its leaf, in the rest of a sentence. Throws `proof_invalid`
   * where the tree does not know where its bundles begin.
   */
  async function fitOf(files: TreeFiles, event: StoredEvent, over: ComparedTree): Promise<string> {
    const { head, size } = over;
    const bundle = await findBundle(files, event.position, size);
    try {
      return await fitIn(files, event, { ...over, bundle });
    } catch (error) {
      if (!isTurnlogError(error, 'proof_invalid')) throw error;
      // It may hold bytes that were damaged and are repaired.
      if (files === cached) cached = cachedTree(head.reader);
      lost = { reason: error.message, again: () => requireLeaf(event) };
      return `can't be compared with its leaf: ${error.message}`;
    }
  }

  /**
   * Looks at the end of the tree again without any cache; false while nothing is signed. Throws
   * `proof_invalid` where the log has another event there, because either of them was changed.
   */
  async function endOfTree(): Promise<boolean> {
    await refresh();
    const last = signed?.last;
    const stored = last && (await log.eventAt(last.position));
    if (last && stored?.id !== last.event_id) throw treeEndError(last, stored);
    return last !== undefined;
  }

  /** Throws as long as the tree lacks a part that a comparison of the event needs. */
  async function requireLeaf(event: StoredEvent): Promise<void> {
    await endOfTree();
    const over = treeOver(event);
    if (!over) return;
    const { reader } = over.head;
    const bundle = await findBundle(reader, event.position, over.size);
    await fitIn(reader, event, { ...over, bundle });
  }

  /** Looks again at what seems not to fit. */
  async function fitAgain(event: StoredEvent): Promise<string> {
    await endOfTree();
    const over = treeOver(event);
    return over ? fitOf(over.head.reader, event, over) : FITS;
  }

  /**
   * Throws `store_unavailable` where the tree has lost what a comparison needs, or it can't be read:
   * otherwise events could be rewritten once a file is deleted or made unreadable. `again` fails for
   * as long. An unavailable store is passed over unless `mustCompare`.
   */
  function passOver(error: unknown, again: () => Promise<unknown>, mustCompare = false): void {
    const { message } = error as Error;
    const isAway = isTurnlogError(error) && error.isAway;
    const reason = isAway
      ? `Events are not being compared with the transparency log. ${message}`
      : message;
    lost = { reason, again };
    if ((isAway && mustCompare) || isTurnlogError(error, 'log_changed')) throw error;
    if (isAway) return;
    throw storeUnavailableError(
      `Events can't be compared with the transparency log. ${message}`,
      error,
    );
  }

  /** The flaw of the first event that does not fit its leaf, and the last event that does. */
  async function compare(
    events: readonly StoredEvent[],
    pause: Pause,
  ): Promise<{ flaw?: StreamFlaw; compared?: StoredEvent }> {
    let compared: StoredEvent | undefined;
    for (const event of events) {
      await pause();
      await endFor(event);
      const over = treeOver(event);
      if (!over) break;
      if ((await fitOf(cached, event, over)) === FITS) compared = event;
      else {
        const fit = await fitAgain(event);
        if (fit !== FITS) return { flaw: flawOf(event, fit) };
      }
    }
    return compared ? { compared } : {};
  }

  const newestKnown = (stream: string): number => ranges.peek(stream)?.revision ?? -1;

  /** Remembers that all events from a revision up to this one are as they were recorded. */
  function remember(event: StoredEvent, from: number): void {
    const { stream, revision } = event;
    if (newestKnown(stream) < revision)
      ranges.set(stream, { revision, hash: recordedHash(event), from, ownFrom: revision + 1 });
  }

  /** Compares events of a stream, all but those that are known at `at`, -1 for none. */
  async function compareUnknown(
    events: readonly StoredEvent[],
    at: number,
    pause: Pause,
  ): Promise<StreamFlaw | undefined> {
    const first = events[0]!.revision;
    const { stream } = events[0]!;
    const range = at < 0 ? undefined : ranges.get(stream);
    const later = events.slice(at + 1);
    const earlier = range ? events.filter(({ revision }) => revision < range.from) : [];
    const before = await compare(earlier, pause);
    if (before.flaw) return before.flaw;
    const { flaw, compared } = await compare(later, pause);
    if (flaw) return flaw;
    // Only as far as the tree covers them.
    if (range && before.compared === earlier.at(-1)) range.from = Math.min(range.from, first);
    if (compared) remember(compared, range?.from ?? first);
    return undefined;
  }

  /** The event at the known revision of the stream. */
  const knownIn = (events: readonly StoredEvent[]): StoredEvent | undefined =>
    events.find(({ stream, revision }) => revision === ranges.get(stream)?.revision);

  /** The index of the known event, -1 without one; undefined when another event stands there. */
  function indexOfKnown(events: readonly StoredEvent[]): number | undefined {
    const event = knownIn(events);
    if (!event) return -1;
    return recordedHash(event) === ranges.get(event.stream)?.hash
      ? events.indexOf(event)
      : undefined;
  }

  return {
    appended(stream, revision, events) {
      const last = events.at(-1);
      if (!last) return;
      const first = revision - events.length + 1;
      const before = ranges.get(stream);
      const continued = before?.revision === first - 1 ? before : { from: first, ownFrom: first };
      const { from, ownFrom } = continued;
      ranges.set(stream, { revision, hash: recordedHash(last), from, ownFrom });
    },
    areOwn(events) {
      const [first, last] = [events[0], events.at(-1)];
      if (!first || !last) return true;
      const own = ranges.get(first.stream);
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
      const pause = createPause(() => parseAccountId(last) ?? last.stream);
      const flaw = await chainFlaw(events, pause);
      if (flaw) return flaw;
      try {
        const at = indexOfKnown(events) ?? (await refresh(), indexOfKnown(events));
        if (at === undefined)
          return (await compare(events, pause)).flaw ?? flawOf(knownIn(events)!, CHANGED);
        return await compareUnknown(events, at, pause);
      } catch (error) {
        passOver(error, () => requireLeaf(last), mustCompare);
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
      const failure = lost;
      failure?.again().then(
        () => void (lost = lost === failure ? undefined : lost),
        // It is as lost as before.
        () => undefined,
      );
      if (!failure && tree.doubt() !== undefined) refresh().catch(() => undefined);
      return failure?.reason ?? tree.doubt();
    },
  };
}
