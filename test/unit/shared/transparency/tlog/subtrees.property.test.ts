import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { leafEntry } from '../../../../../shared/transparency/tlog/leaf.ts';
import { leafHash } from '../../../../../shared/transparency/tlog/merkle.ts';
import { createInclusionProver } from '../../../../../shared/transparency/tlog/proofs.ts';
import { openRightEdge } from '../../../../../shared/transparency/tlog/rightEdge.ts';
import { createInclusionChecker } from '../../../../../shared/transparency/tlog/subtrees.ts';
import { memoryTiles } from '../../../../support/fakes/memoryTiles.ts';

const entryOf = (index: number): Buffer => leafEntry('a'.repeat(64), index);

async function treeOf(size: number) {
  const tiles = memoryTiles();
  const edge = await openRightEdge(tiles, 0);
  for (let index = 0; index < size; index += 1) edge.append(entryOf(index));
  tiles.write(edge.takeFiles());
  return { tiles, head: { size, root: edge.root() } };
}

/** A tree and some of its leaves, in their order. */
const chosen = fc.integer({ min: 1, max: 1_200 }).chain((size) =>
  fc.record({
    size: fc.constant(size),
    leaves: fc
      .uniqueArray(fc.nat(size - 1), { minLength: 1, maxLength: 30 })
      .map((all) => all.toSorted((a, b) => a - b)),
  }),
);

test('leaves are proven one after the other, in any tree, and no other leaf is', async () => {
  await fc.assert(
    fc.asyncProperty(chosen, fc.nat(), async ({ size, leaves }, seed) => {
      const { tiles, head } = await treeOf(size);
      const prove = createInclusionProver(tiles, size);
      const proofs: Uint8Array[][] = [];
      for (const leaf of leaves) proofs.push(await prove(leaf));
      const proven = (change: (at: number) => number): boolean[] => {
        const check = createInclusionChecker(head);
        return leaves.map((leaf, at) => check(leafHash(entryOf(change(at))), leaf, proofs[at]!));
      };
      expect(proven((at) => leaves[at]!)).toEqual(leaves.map(() => true));
      const wrong = seed % leaves.length;
      const [first] = proven((at) => leaves[at]! + (at === wrong ? 1 : 0)).slice(wrong);
      expect(first).toBe(false);
    }),
    { numRuns: 40 },
  );
});

test('of consecutive leaves every other one needs no hash', async () => {
  const { tiles } = await treeOf(300);
  const prove = createInclusionProver(tiles, 300);
  const lengths: number[] = [];
  for (let leaf = 8; leaf < 16; leaf += 1) lengths.push((await prove(leaf)).length);
  expect(lengths).toEqual([9, 0, 1, 0, 2, 0, 1, 0]);
});

test('a leaf that is not after the one before is neither proven nor taken', async () => {
  const { tiles, head } = await treeOf(20);
  const prove = createInclusionProver(tiles, 20);
  const check = createInclusionChecker(head);
  const hashes = await prove(7);
  expect(check(leafHash(entryOf(7)), 7, hashes)).toBe(true);
  expect(check(leafHash(entryOf(7)), 7, hashes)).toBe(false);
  await expect(prove(7)).rejects.toThrow('leaf 7 is not after the leaf before it');
  const ended = createInclusionProver(tiles, 20);
  await expect(ended(20)).rejects.toThrow(RangeError);
});

test('of consecutive leaves each tile is read once', async () => {
  const { tiles } = await treeOf(600);
  const reads: string[] = [];
  const read = (path: string) => {
    reads.push(path);
    return tiles.read(path);
  };
  const prove = createInclusionProver({ read }, 600);
  // The first path has the roots of all that follows.
  await prove(0);
  reads.length = 0;
  for (let leaf = 1; leaf < 600; leaf += 1) await prove(leaf);
  expect(reads.length).toBeLessThanOrEqual(4);
});
