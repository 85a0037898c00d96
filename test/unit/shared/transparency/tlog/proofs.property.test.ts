import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { leafHash } from '../../../../../shared/transparency/tlog/merkle.ts';
import {
  consistencyProof,
  createPathReader,
  inclusionProof,
  rootAt,
} from '../../../../../shared/transparency/tlog/proofs.ts';
import { openRightEdge } from '../../../../../shared/transparency/tlog/rightEdge.ts';
import {
  hashesAt,
  parseTilePath,
  TILE_WIDTH,
} from '../../../../../shared/transparency/tlog/tiles.ts';
import {
  verifyConsistency,
  verifyInclusion,
  type TreeHead,
} from '../../../../../shared/transparency/tlog/verify.ts';
import { size } from '../../../../support/jest/size.ts';
import { entryOf, memoryTiles, treeOf } from '../../../../support/fakes/memoryTiles.ts';

const LEAVES = 70_000;
const numRuns = size({ small: 40, full: 2_000 });
/** Sizes around those at which tiles are full. */
const leaves = fc.oneof(
  fc.integer({ min: 1, max: 1_200 }),
  fc.integer({ min: 65_300, max: LEAVES }),
  fc.constantFrom(1, 2, 255, 256, 257, 512, 65_535, 65_536, 65_537, LEAVES),
);
const { tiles } = await treeOf(LEAVES);

const headOf = async (count: number): Promise<TreeHead> => ({
  size: count,
  root: await rootAt(tiles, count),
});

/** The same bytes but for one bit. */
function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = Uint8Array.from(bytes);
  const bit = at % (8 * copy.length);
  copy[Math.floor(bit / 8)]! ^= 1 << (bit % 8);
  return copy;
}

/** Every way to change one of the hashes, leave one out or add one. */
const changedProofs = (proof: readonly Uint8Array[], at: number): Uint8Array[][] => [
  ...proof.map((hash, index) => proof.with(index, flipped(hash, at))),
  ...proof.map((_, index) => proof.toSpliced(index, 1)),
  [...proof, flipped(leafHash(entryOf(at)), 0)],
];

test('a proof of inclusion holds, and no other one does', async () => {
  await fc.assert(
    fc.asyncProperty(leaves, fc.nat(), fc.nat(), async (count, somewhere, at) => {
      const index = somewhere % count;
      const head = await headOf(count);
      const leaf = leafHash(entryOf(index));
      const proof = await inclusionProof(tiles, index, count);
      expect(verifyInclusion(proof, index, leaf, head)).toBe(true);
      for (const changed of changedProofs(proof, at))
        expect(verifyInclusion(changed, index, leaf, head)).toBe(false);
      expect(verifyInclusion(proof, index, flipped(leaf, at), head)).toBe(false);
      expect(verifyInclusion(proof, index, leaf, { ...head, root: flipped(head.root, at) })).toBe(
        false,
      );
      expect(verifyInclusion(proof, count, leaf, head)).toBe(false);
      if (count > 1) expect(verifyInclusion(proof, (index + 1) % count, leaf, head)).toBe(false);
    }),
    { numRuns },
  );
});

test('proofs of leaves one after the other read each tile once', async () => {
  const head = await headOf(LEAVES);
  const paths: string[] = [];
  const read = (path: string) => {
    paths.push(path);
    return tiles.read(path);
  };
  const prove = createPathReader({ read }, LEAVES);
  for (let index = 200; index < 600; index += 1)
    expect(verifyInclusion(await prove(index), index, leafHash(entryOf(index)), head)).toBe(true);
  // Those of the leaves, that at the right edge, and two above them.
  expect(paths).toHaveLength(3 + 1 + 2);
});

test('a proof of consistency holds, and no other one does', async () => {
  await fc.assert(
    fc.asyncProperty(leaves, leaves, fc.nat(), async (one, other, at) => {
      const [from, to] = one < other ? [one, other] : [other, one];
      const [before, after] = [await headOf(from), await headOf(to)];
      const proof = await consistencyProof(tiles, from, to);
      expect(verifyConsistency(proof, before, after)).toBe(true);
      for (const changed of changedProofs(proof, at))
        expect(verifyConsistency(changed, before, after)).toBe(false);
      const otherRoot = { ...before, root: flipped(before.root, at) };
      expect(verifyConsistency(proof, otherRoot, after)).toBe(false);
      expect(verifyConsistency(proof, before, { ...after, root: flipped(after.root, at) })).toBe(
        false,
      );
      if (from < to) expect(verifyConsistency(proof, after, before)).toBe(false);
    }),
    { numRuns },
  );
});

test('a tree is the same however its leaves came in, and wherever its writer began anew', async () => {
  const cuts = fc.array(fc.nat({ max: 900 }), { maxLength: 8 });
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 900 }), cuts, async (count, places) => {
      const whole = await treeOf(count);
      const parts = memoryTiles();
      let edge = await openRightEdge(parts, 0);
      for (const end of [...places.filter((at) => at < count).toSorted((a, b) => a - b), count]) {
        while (edge.size() < end) edge.append(entryOf(edge.size()));
        parts.write(edge.takeFiles());
        edge = await openRightEdge(parts, end);
      }
      for (const [path, bytes] of whole.tiles.files) expect(parts.files.get(path)).toEqual(bytes);
      expect(edge.root()).toEqual(whole.edge.root());
    }),
    { numRuns },
  );
});

test('a tree has the tiles of its size, and no others when it is written once', async () => {
  // The example of C2SP tlog-tiles.
  const places = [...tiles.files.keys()].map((path) => parseTilePath(path)!);
  const at = (level: number | 'entries') => places.filter((place) => place.level === level);
  expect(at(0)).toHaveLength(274);
  expect(at(0).at(-1)).toEqual({ level: 0, index: 273, width: 112 });
  expect(at(1).map(({ width }) => width)).toEqual([TILE_WIDTH, 17]);
  expect(at(2)).toEqual([{ level: 2, index: 0, width: 1 }]);
  expect(at('entries')).toHaveLength(274);
  expect(hashesAt(2, LEAVES)).toBe(1);
});
