import { isAsWritten } from '../../../../../shared/eventlog/hashChain.ts';
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import fc from 'fast-check';
import type { Checkpoint, StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { describeTreeChange } from '../../../../../shared/transparency/proof/describeTreeChange.ts';
import {
  createTreeChecker,
  type TreeChecker,
} from '../../../../../shared/transparency/proof/treeChecker.ts';
import type { TreeFault } from '../../../../../shared/transparency/proof/treeFault.ts';
import { verifyChains } from '../../../../../shared/eventlog/reading/verifyChains.ts';
import type { TileReader } from '../../../../../shared/transparency/tileStore.ts';
import type { TreeHead } from '../../../../../shared/transparency/tlog/verify.ts';
import { size } from '../../../../support/jest/size.ts';
import {
  logOf,
  memoryLog,
  placed,
  positionAt,
  streamsWriter,
  treeOfLog,
} from '../../../../support/fakes/memoryLog.ts';
import { memoryTiles, type MemoryTiles } from '../../../../support/fakes/memoryTiles.ts';

const EVENTS = size({ small: 700, full: 10_000 });
const RUNS = { numRuns: size({ small: 20, full: 300 }) };
const signal = new AbortController().signal;

jest.setTimeout(size({ small: 120_000, full: 3_600_000 }));

let log: StoredEvent[];
let tiles: MemoryTiles;
beforeAll(async () => {
  log = logOf(EVENTS);
  ({ tiles } = await treeOfLog(log));
});

interface Named {
  index: number;
  kind: TreeFault['kind'];
  reason: string;
}

/** What a verification of a log with the tree of `leaves` events names first. */
async function firstOf(
  changed: readonly StoredEvent[],
  reader: Pick<TileReader, 'read' | 'beforeBundle'>,
  { leaves = EVENTS, heads = [] }: { leaves?: number; heads?: readonly TreeHead[] } = {},
): Promise<Named | undefined> {
  const store = memoryLog(changed);
  const found = async (divide: (tree: TreeChecker) => TreeChecker) => {
    const tree = divide(await createTreeChecker({ reader, size: leaves, heads, from: 0 }));
    return verifyChains({
      store,
      after: undefined,
      tree,
      signal,
      onProgress: () => undefined,
    });
  };
  const finding = await found((tree) => tree);
  // Another thread that hashes some contents, and compares batches in their order, changes nothing.
  const unlikeWritten = async (events: readonly StoredEvent[]) =>
    [...events.keys()].filter((index) => !isAsWritten(events[index]!));
  const inOrder = (tree: TreeChecker): TreeChecker => {
    let last: Promise<unknown> = Promise.resolve();
    return {
      ...tree,
      unlikeWritten,
      async compare(batch) {
        const compared = last.then(() => tree.compare(batch));
        last = compared.catch(() => undefined);
        return compared;
      },
    };
  };
  expect(await found(inOrder)).toEqual(finding);
  if (!finding) return undefined;
  const { misfit, fault, found: event } = finding;
  if (misfit) return { index: Number(misfit.position), kind: 'event', reason: misfit.reason };
  if (fault.kind !== 'event') return fault;
  const other = { index: fault.index, found: event!, expected: fault.expected! };
  const reason = await describeTreeChange({ store, reader, size: leaves, signal }, other);
  return { index: fault.index, kind: 'event', reason };
}

const place = fc.nat(EVENTS - 1);

/** Two places of the log, the first one before the other. */
const places = fc
  .uniqueArray(place, { minLength: 2, maxLength: 2 })
  .map((two) => two.toSorted((a, b) => a - b) as [number, number]);

/** The events of a stream from one on, with another text and all hashes that fit. */
function rewritten(events: readonly StoredEvent[], from: number): StoredEvent[] {
  const { stream } = events[from]!;
  const write = streamsWriter();
  return events.map((event, index) => {
    if (event.stream !== stream) return event;
    const data = JSON.parse(event.data) as object;
    const anew = write(stream, index === from ? { ...data, text: 'other' } : data, event.id);
    return { ...anew, position: event.position };
  });
}

test('nothing is found in a log and a tree that nobody changed', async () => {
  expect(await firstOf(log, tiles)).toBeUndefined();
});

describe('of a change in the store, the first event is named', () => {
  const asked = (property: fc.IAsyncPropertyWithHooks<any>) => fc.assert(property, RUNS);

  test('when its content was changed', () =>
    asked(
      fc.asyncProperty(place, fc.constantFrom('data', 'metadata'), async (at, member) => {
        const text = log[at]![member].replace(/event|key_1/, 'other');
        const changed = log.with(at, { ...log[at]!, [member]: text });
        expect(await firstOf(changed, tiles)).toMatchObject({
          index: at,
          reason: 'its hash does not match its content',
        });
      }),
    ));

  test('when it was dropped', () =>
    asked(
      fc.asyncProperty(fc.nat(EVENTS - 2), async (at) => {
        const found = await firstOf(placed(log.toSpliced(at, 1)), tiles);
        expect(found).toMatchObject({ index: at, kind: 'event' });
        expect(found!.reason).toContain('an event was dropped before it');
      }),
    ));

  test('when the end was cut off', () =>
    asked(
      fc.asyncProperty(place, async (at) => {
        expect(await firstOf(log.slice(0, at), tiles)).toMatchObject({ index: at, kind: 'end' });
      }),
    ));

  test('when it was swapped with another one', () =>
    asked(
      fc.asyncProperty(places, async ([one, other]) => {
        const swapped = placed(log.with(one, log[other]!).with(other, log[one]!));
        const found = await firstOf(swapped, tiles);
        expect(found).toMatchObject({ index: one, kind: 'event' });
        expect(found!.reason).toContain('it was swapped or moved');
      }),
    ));

  test('when it was duplicated', () =>
    asked(
      fc.asyncProperty(places, async ([one, other]) => {
        const found = await firstOf(placed(log.toSpliced(other, 0, log[one]!)), tiles);
        expect(found).toMatchObject({ index: other, kind: 'event' });
        expect(found!.reason).toContain(`it is a duplicate: its leaf is ${one}`);
      }),
    ));

  test('when one was inserted, with a chain that fits', () =>
    asked(
      fc.asyncProperty(place, async (at) => {
        const more = streamsWriter()('test-inserted', { text: 'new' });
        const found = await firstOf(placed(log.toSpliced(at, 0, more)), tiles);
        expect(found).toMatchObject({ index: at, kind: 'event' });
        expect(found!.reason).toContain('it was inserted');
      }),
    ));
});

test('a verification goes on after any event, though no tile ends there', () =>
  fc.assert(
    fc.asyncProperty(place, async (at) => {
      const from = at + 1;
      const tree = await createTreeChecker({ reader: tiles, size: EVENTS, heads: [], from });
      const onProgress = (): void => undefined;
      const after = log[at]!.position;
      const rest = { store: memoryLog(log), after, tree, signal, onProgress };
      expect(await verifyChains(rest)).toBeUndefined();
      expect(tree.size()).toBe(EVENTS);
    }),
    RUNS,
  ));

test('a checkpoint of what came before is compared where a verification goes on behind it', () =>
  fc.assert(
    fc.asyncProperty(places, fc.boolean(), async ([at, before], isOther) => {
      const from = before + 1;
      const {
        heads: [head],
      } = await treeOfLog(log, [at + 1]);
      const root = isOther ? Buffer.alloc(32) : head!.root;
      const heads = [{ size: at + 1, root }];
      const tree = await createTreeChecker({ reader: tiles, size: EVENTS, heads, from });
      const onProgress = (): void => undefined;
      const after = log[before]!.position;
      const rest = { store: memoryLog(log), after, tree, signal, onProgress };
      const fault = (await verifyChains(rest))?.fault;
      expect(fault).toEqual(
        isOther ? expect.objectContaining({ index: at, kind: 'checkpoint' }) : undefined,
      );
    }),
    RUNS,
  ));

describe('of what is kept of where bundles begin, is named', () => {
  const found = async (change: Partial<Checkpoint> | undefined) => {
    const changed = memoryTiles();
    for (const [name, content] of tiles.files) changed.files.set(name, content);
    for (const [bundle, before] of tiles.bundles) changed.bundles.set(bundle, before);
    if (change) changed.bundles.set(2, { ...tiles.bundles.get(2)!, ...change });
    else changed.bundles.delete(2);
    return firstOf(log, changed);
  };

  test.each([
    ['a position', { position: positionAt(3) }],
    ['a hash', { event_hash: '0'.repeat(64) }],
    ['an id', { event_id: 'other' }],
    ['nothing', undefined],
  ])('%s that is not the one of the event before', async (_what, change) => {
    const fault = await found(change);
    expect(fault).toMatchObject({ index: 511, kind: 'tile' });
    expect(fault!.reason).toContain('bundle 2 begins after the event');
  });
});

describe('of a change in the tiles, the file is named', () => {
  const files = (): string[] => [...tiles.files.keys()].toSorted();
  /** Tiles of which one file was changed. */
  const with_ = (path: string, bytes: Uint8Array | undefined): MemoryTiles => {
    const changed = memoryTiles();
    for (const [name, content] of tiles.files) changed.files.set(name, content);
    for (const [bundle, before] of tiles.bundles) changed.bundles.set(bundle, before);
    if (bytes) changed.files.set(path, bytes);
    else changed.files.delete(path);
    return changed;
  };

  test('when any byte of any of them was changed', () =>
    fc.assert(
      fc.asyncProperty(fc.nat(), fc.nat(), fc.integer({ min: 1, max: 255 }), async (...random) => {
        const path = files()[random[0] % files().length]!;
        const bytes = Buffer.from(tiles.files.get(path)!);
        bytes[random[1] % bytes.length]! ^= random[2];
        const found = await firstOf(log, with_(path, bytes));
        expect(found?.kind).toBe('tile');
        expect(found?.reason).toContain(path);
      }),
      RUNS,
    ));

  test('when one of them is gone', async () => {
    for (const path of files()) {
      const found = await firstOf(log, with_(path, undefined));
      expect(found?.kind).toBe('tile');
      expect(found?.reason).toContain(path);
    }
  });
});

describe('of a rewriting that fits in itself', () => {
  test('the first event is named while the tiles are as they were', () =>
    fc.assert(
      fc.asyncProperty(place, async (from) => {
        const found = await firstOf(rewritten(log, from), tiles);
        expect(found).toMatchObject({ index: from, kind: 'event' });
        expect(found!.reason).toContain('it was changed, and its hash with it');
      }),
      RUNS,
    ));

  test('one older checkpoint shows it when the tiles were made anew with it', () =>
    fc.assert(
      fc.asyncProperty(places, async ([from, before]) => {
        const { heads } = await treeOfLog(log, [before + 1]);
        const other = rewritten(log, from);
        const { tiles: anew } = await treeOfLog(other);
        expect(await firstOf(other, anew)).toBeUndefined();
        expect(await firstOf(other, anew, { heads })).toMatchObject({
          index: before,
          kind: 'checkpoint',
        });
      }),
      { numRuns: size({ small: 10, full: 60 }) },
    ));

  test('an older checkpoint shows that the end was cut off, the tiles with it', async () => {
    const { heads } = await treeOfLog(log, [EVENTS]);
    const shorter = log.slice(0, -1);
    const { tiles: anew } = await treeOfLog(shorter);
    expect(await firstOf(shorter, anew, { leaves: EVENTS - 1, heads })).toMatchObject({
      index: EVENTS - 1,
      kind: 'end',
    });
  });
});
