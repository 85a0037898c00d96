/** The tree as the browser computes it, compared with Go's vectors and with the service's own prover. */
import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { Bytes } from '../../../../../../../services/console/src/audit/verify/bytes.ts';
import {
  extendsTree,
  inclusionFault,
  tileHashes,
} from '../../../../../../../services/console/src/audit/verify/merkle.ts';
import { leafEntry } from '../../../../../../../shared/transparency/tlog/leaf.ts';
import { inclusionProof, rootAt } from '../../../../../../../shared/transparency/tlog/proofs.ts';
import { openRightEdge } from '../../../../../../../shared/transparency/tlog/rightEdge.ts';
import { vectors } from '../../../../../../support/builders/vectors.ts';
import { memoryTiles, treeOf } from '../../../../../../support/fakes/memoryTiles.ts';

const bytes = (hash: Uint8Array): Bytes => new Uint8Array(hash);
const read64 = (hash: string): Bytes => bytes(Buffer.from(hash, 'base64'));
const roots = new Map(vectors.Trees.map(({ Size, Root }) => [Size, read64(Root)]));

test('a tree extends those that Go proves to be its beginning, and none with another root', async () => {
  const { tiles } = await treeOf(1_300);
  for (const { Index, Size } of vectors.Consistency) {
    const older = { size: Index, root: roots.get(Index)! };
    const newer = { size: Size, root: roots.get(Size)! };
    const read = tileHashes(Size, async (path) => {
      const tile = await tiles.read(path);
      return tile && bytes(tile);
    });
    expect(await extendsTree(older, newer, read)).toBe(true);
    const change = (root: Bytes): Bytes => root.map((byte) => byte ^ 1);
    expect(await extendsTree({ ...older, root: change(older.root) }, newer, read)).toBe(false);
    if (Index === 0) continue;
    expect(await extendsTree(older, { ...newer, root: change(newer.root) }, read)).toBe(false);
    if (Index === Size) continue;
    expect(await extendsTree(newer, older, read)).toBe(false);
    // A log that serves the hashes of another tree.
    const lie = async (level: number, at: number): Promise<Bytes> => change(await read(level, at));
    expect(await extendsTree(older, newer, lie)).toBe(false);
  }
});

/** A tree and some of its leaves, in their order. */
const chosen = fc.integer({ min: 1, max: 700 }).chain((size) =>
  fc.record({
    size: fc.constant(size),
    leaves: fc
      .uniqueArray(fc.nat(size - 1), { minLength: 1, maxLength: 20 })
      .map((all) => all.toSorted((a, b) => a - b)),
  }),
);

test('verifies each leaf of a tree by its proof, and no other leaf, hash or length', async () => {
  await fc.assert(
    fc.asyncProperty(chosen, fc.nat(), async ({ size, leaves }, seed) => {
      const tiles = memoryTiles();
      const edge = await openRightEdge(tiles, 0);
      const hash = 'a'.repeat(64);
      for (let index = 0; index < size; index += 1) edge.append(leafEntry(hash, index));
      tiles.write(edge.takeFiles());
      const tree = { size, root: bytes(await rootAt(tiles, size)) };
      for (const leaf of leaves) {
        const hashes = (await inclusionProof(tiles, leaf, size)).map(bytes);
        expect(await inclusionFault(tree, { hash, leaf, hashes })).toBeUndefined();
        const other = 'b'.repeat(64);
        expect(await inclusionFault(tree, { hash: other, leaf, hashes })).toMatch(/^root /);
        const long = [...hashes, bytes(Buffer.alloc(32))];
        expect(await inclusionFault(tree, { hash, leaf, hashes: long })).toMatch(/^no root/);
        if (hashes.length === 0) continue;
        const at = seed % hashes.length;
        const changed = hashes.with(
          at,
          hashes[at]!.map((byte) => byte ^ 1),
        );
        expect(await inclusionFault(tree, { hash, leaf, hashes: changed })).toMatch(/^root /);
        expect(await inclusionFault(tree, { hash, leaf, hashes: hashes.slice(1) })).toBeDefined();
      }
      const beyond = { hash, leaf: size, hashes: [] };
      expect(await inclusionFault(tree, beyond)).toMatch(/^no root/);
    }),
    { numRuns: 30 },
  );
});
