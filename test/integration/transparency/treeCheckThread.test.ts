import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { startTreeCheckThread } from '../../../infra/files/treeCheckThread.ts';
import { openOneFileTree } from '../../../infra/files/tileReader.ts';
import { openFileTileTrees } from '../../../infra/files/tileStore.ts';
import {
  createTreeChecker,
  type Leaf,
  type TreeChecker,
} from '../../../shared/transparency/proof/treeChecker.ts';
import { openRightEdge } from '../../../shared/transparency/tlog/rightEdge.ts';
import { checkpointAt, growBy } from '../../contracts/tileStore.ts';
import { logOf } from '../../support/fakes/memoryLog.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const LEAVES = 5_000;

let folder: string;
let leaves: Leaf[];
let root: Buffer;
beforeAll(async () => {
  folder = await temporaryFolder();
  const tree = await openFileTileTrees(join(folder, 'tlog')).open('test');
  const edge = await openRightEdge(tree, 0);
  await growBy(tree, edge, LEAVES);
  root = edge.root();
  leaves = Array.from({ length: LEAVES }, (_, at) => {
    const { event_id: id, event_hash: hash, position } = checkpointAt(at);
    return { id, hash, position };
  });
});
afterAll(() => rm(folder, { recursive: true }));

const threads: Awaited<ReturnType<typeof startTreeCheckThread>>[] = [];
afterEach(async () => {
  for (const thread of threads.splice(0)) await thread.close();
});

async function inThread(from = 0, heads = [{ size: LEAVES, root }]) {
  const thread = await startTreeCheckThread({
    folder: join(folder, 'tlog', 'test'),
    size: LEAVES,
    heads,
    from,
  });
  threads.push(thread);
  return thread;
}

/** The first fault, of comparisons that are all asked for at once. */
async function firstFault(tree: TreeChecker, all: readonly Leaf[]) {
  const batches = Array.from({ length: Math.ceil(all.length / 1_000) }, (_, at) => at * 1_000);
  const results = await Promise.all(batches.map((at) => tree.compare(all.slice(at, at + 1_000))));
  const at = results.findIndex((found) => found !== undefined);
  return at === -1 ? {} : { batch: batches[at], found: results[at] };
}

/** What the checker says of all leaves, some at a time, and of the end. */
async function saidBy(tree: TreeChecker, all: readonly Leaf[]) {
  for (let at = 0; at < all.length; at += 1_000) {
    const found = await tree.compare(all.slice(at, at + 1_000));
    if (found) return { found, batch: at, size: tree.size() };
  }
  return { end: await tree.end(), size: tree.size() };
}

test.each([
  ['nothing', (all: Leaf[]) => all, { end: undefined, size: LEAVES }],
  [
    'an event that was changed',
    (all: Leaf[]) => all.with(2_345, { ...all[2_345]!, hash: 'a'.repeat(64) }),
    { batch: 2_000, found: { at: 345, fault: { index: 2_345, kind: 'event' } } },
  ],
  [
    'a place at which a bundle begins',
    (all: Leaf[]) => all.with(511, { ...all[511]!, id: 'another' }),
    { batch: 0, found: { at: 511, fault: { index: 511, kind: 'tile' } } },
  ],
  ['an end that is missing', (all: Leaf[]) => all.slice(0, -1), { end: { kind: 'end' } }],
])('finds on its thread what is found without one: %s', async (_what, change, due) => {
  const reader = openOneFileTree(join(folder, 'tlog'));
  const part = { size: LEAVES, heads: [{ size: LEAVES, root }], from: 0 };
  const said = await saidBy(await inThread(), change(leaves));
  expect(said).toMatchObject(due);
  expect(said).toEqual(await saidBy(await createTreeChecker({ reader, ...part }), change(leaves)));
  const { batch, found } = said;
  expect(await firstFault(await inThread(), change(leaves))).toEqual(found ? { batch, found } : {});
});

test('goes on in the middle, and names a checkpoint that does not fit', async () => {
  const tree = await inThread(1_300, [{ size: LEAVES, root: Buffer.alloc(32) }]);
  expect(tree.size()).toBe(1_300);
  expect(await saidBy(tree, leaves.slice(1_300))).toMatchObject({
    found: { fault: { index: LEAVES - 1, kind: 'checkpoint' } },
  });
});

test('hashes contents on its thread, beside a comparison', async () => {
  const tree = await inThread();
  const log = logOf(20);
  const changed = log.with(7, { ...log[7]!, data: '{}' });
  const [found, unlike] = await Promise.all([
    tree.compare(leaves.slice(0, 1_000)),
    tree.unlikeWritten!(changed),
  ]);
  expect(found).toBeUndefined();
  expect(unlike).toEqual([7]);
  expect(await tree.unlikeWritten!(log)).toEqual([]);
  // Such an event hides where others begin: all are to be looked at again.
  const torn = log.with(3, { ...log[3]!, type: 'a\nb' });
  expect(await tree.unlikeWritten!(torn)).toHaveLength(20);
});

test('an error of the thread is its own error here', async () => {
  const missing = startTreeCheckThread({ folder, size: LEAVES, heads: [], from: 300 });
  await expect(missing).rejects.toMatchObject({ code: 'proof_invalid' });
});

test('nobody waits for a thread that has ended', async () => {
  const tree = await inThread();
  const asked = tree.compare(leaves);
  await Promise.all([
    expect(asked).rejects.toMatchObject({ code: 'store_unavailable' }),
    tree.close(),
  ]);
  await expect(tree.end()).rejects.toMatchObject({ code: 'store_unavailable' });
});
