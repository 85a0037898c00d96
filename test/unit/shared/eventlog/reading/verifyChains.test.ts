/** Batches that are checked at once: what is found, and how many there are. */
import { expect, test } from '@jest/globals';
import { setImmediate as turn } from 'node:timers/promises';
import { isAsWritten } from '../../../../../shared/eventlog/hashChain.ts';
import { verifyChains } from '../../../../../shared/eventlog/reading/verifyChains.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import type {
  FoundFault,
  TreeChecker,
} from '../../../../../shared/transparency/proof/treeChecker.ts';
import { logOf, memoryLog } from '../../../../support/fakes/memoryLog.ts';

/** The batches of memoryLog. */
const BATCH = 100;
const log = logOf(4 * BATCH);

const changedAt = (index: number): StoredEvent[] => log.with(index, { ...log[index]!, data: '{}' });

/** A tree on another thread, which answers in its order; `faults` are by the batch. */
function slowTree(faults: Readonly<Record<number, FoundFault>> = {}) {
  let batches = 0;
  let open = 0;
  const tree = {
    mostOpen: 0,
    size: () => 0,
    async compare() {
      const batch = batches++;
      tree.mostOpen = Math.max(tree.mostOpen, ++open);
      for (let turns = 0; turns < 20; turns += 1) await turn();
      open -= 1;
      return faults[batch];
    },
    unlikeWritten: async (events: readonly StoredEvent[]) =>
      [...events.keys()].filter((at) => !isAsWritten(events[at]!)),
    end: async () => undefined,
  } satisfies TreeChecker & { mostOpen: number };
  return tree;
}

const verify = (events: readonly StoredEvent[], tree: TreeChecker, store = memoryLog(events)) =>
  verifyChains({
    store,
    after: undefined,
    tree,
    signal: new AbortController().signal,
    onProgress: () => undefined,
  });

const faultAt = (at: number): FoundFault => ({
  at,
  fault: { index: at, kind: 'event', reason: 'it was changed' },
});

test('two batches are compared at once, and every chain goes on in the next one', async () => {
  const tree = slowTree();
  expect(await verify(log, tree)).toBeUndefined();
  expect(tree.mostOpen).toBe(2);
});

test('a tree on the same thread compares a batch at a time', async () => {
  const { unlikeWritten: _, ...tree } = slowTree();
  let [open, mostOpen] = [0, 0];
  const compare = async () => {
    mostOpen = Math.max(mostOpen, ++open);
    await turn();
    open -= 1;
    return undefined;
  };
  expect(await verify(log, { ...tree, compare })).toBeUndefined();
  expect(mostOpen).toBe(1);
});

test.each([10, 90])('the first of two batches with a finding is told, at event %d', async (at) => {
  expect(await verify(changedAt(at), slowTree({ 1: faultAt(5) }))).toMatchObject({
    misfit: { id: log[at]!.id },
  });
  const later = changedAt(BATCH + at);
  expect(await verify(later, slowTree({ 0: faultAt(5) }))).toMatchObject({ found: log[5] });
});

test.each([1, 2])(
  'a read that fails after %d batches hides no finding before it',
  async (batches) => {
    const failing = (events: readonly StoredEvent[]): ReturnType<typeof memoryLog> => ({
      ...memoryLog(events),
      async *subscribe(options) {
        let left = batches;
        for await (const batch of memoryLog(events).subscribe(options)) {
          if (left-- === 0) throw new Error('the disk fails');
          yield batch;
        }
      },
    });
    const changed = changedAt(10);
    expect(await verify(changed, slowTree(), failing(changed))).toMatchObject({
      misfit: { id: log[10]!.id },
    });
    await expect(verify(log, slowTree(), failing(log))).rejects.toThrow('the disk fails');
  },
);
