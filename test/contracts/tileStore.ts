import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { Checkpoint, Position } from '../../shared/ports/eventStore.ts';
import type { TileReader, TileStore, TileTrees } from '../../shared/transparency/tileStore.ts';
import { leafEntry, findLeafIndex } from '../../shared/transparency/tlog/leaf.ts';
import { sha256 } from '../../shared/eventlog/hashChain.ts';
import { consistencyProof, rootAt } from '../../shared/transparency/tlog/proofs.ts';
import { openRightEdge, type RightEdge } from '../../shared/transparency/tlog/rightEdge.ts';
import { TILE_WIDTH } from '../../shared/transparency/tlog/tiles.ts';
import { verifyConsistency } from '../../shared/transparency/tlog/verify.ts';

interface TileStoreFixture {
  /** The trees, as the process that grows them has them. */
  trees(): Promise<TileTrees>;
  /** What another process reads. */
  reader(): TileReader;
  dispose(): Promise<void>;
}

const ORIGIN = 'turnlog/0190-a';
const hashOf = (index: number): string => sha256(`event ${index}`);
/** Of the event that such a tree has as this leaf. */
export const checkpointAt = (index: number): Checkpoint => ({
  log_id: 'log',
  position: String(index).padStart(12, '0') as Position,
  event_id: String(index),
  event_hash: hashOf(index),
});

/** Grows the tree, whose right edge is given, by as many leaves. */
export async function growBy(tree: TileStore, edge: RightEdge, count: number): Promise<void> {
  const from = edge.size();
  const bundles = new Map<number, Checkpoint>();
  for (let at = from; at < from + count; at += 1) {
    if (at > 0 && at % TILE_WIDTH === 0) bundles.set(at / TILE_WIDTH, checkpointAt(at - 1));
    edge.append(leafEntry(hashOf(at), at));
  }
  const size = edge.size();
  const state = { size, checkpoint: checkpointAt(size - 1) };
  await tree.grow({ from, files: edge.takeFiles(), bundles, state });
}

/** The suite that every adapter of the tile store port passes. */
export function tileStoreContract(name: string, create: () => Promise<TileStoreFixture>): void {
  let fixture: TileStoreFixture;
  let trees: TileTrees;
  let tree: TileStore;
  let edge: RightEdge;

  beforeEach(async () => {
    fixture = await create();
    trees = await fixture.trees();
    tree = await trees.open(ORIGIN);
    edge = await openRightEdge(tree, 0);
  });
  afterEach(() => fixture.dispose());

  describe(`${name}: tile store`, () => {
    test('a tree that was just opened has nothing', async () => {
      const reader = fixture.reader();
      expect(await tree.state()).toEqual({ size: 0, checkpoint: undefined });
      expect(await reader.state()).toEqual({ size: 0, checkpoint: undefined });
      expect(await reader.readCheckpoint()).toBeUndefined();
      expect(await reader.read('tile/0/000.p/1')).toBeUndefined();
      expect(await reader.beforeBundle(1)).toBeUndefined();
    });

    test('what was written is read, by another process too', async () => {
      await growBy(tree, edge, 700);
      await tree.publish('a note');
      for (const reader of [tree, fixture.reader()]) {
        expect(await reader.state()).toEqual({ size: 700, checkpoint: checkpointAt(699) });
        expect(await reader.readCheckpoint()).toBe('a note');
        expect(Buffer.from(await rootAt(reader, 700))).toEqual(edge.root());
        expect(await reader.beforeBundle(0)).toBeUndefined();
        expect(await reader.beforeBundle(2)).toEqual(checkpointAt(511));
        expect(await reader.beforeBundle(3)).toBeUndefined();
        const { position, event_hash: hash } = checkpointAt(600);
        expect(await findLeafIndex(reader, { position, hash }, 700)).toBe(600);
      }
    });

    test('a tree goes on where it was when it is opened again', async () => {
      await growBy(tree, edge, 300);
      const later = await fixture.trees();
      const again = await later.open(ORIGIN);
      const { size } = await again.state();
      await growBy(again, await openRightEdge(again, size), 300);
      const whole = await later.open('whole');
      await growBy(whole, await openRightEdge(whole, 0), 600);
      expect(await rootAt(again, 600)).toEqual(await rootAt(whole, 600));
    });

    test('older sizes stay provable, and partial tiles go when the full ones are there', async () => {
      const heads = [];
      for (const count of [100, 100, 56, 300]) {
        await growBy(tree, edge, count);
        heads.push({ size: edge.size(), root: edge.root() });
      }
      expect(await tree.read('tile/0/000')).toHaveLength(8_192);
      expect(await tree.read('tile/0/000.p/100')).toBeUndefined();
      expect(await tree.read('tile/entries/000.p/200')).toBeUndefined();
      expect(await tree.read('tile/0/002.p/44')).toHaveLength(44 * 32);
      const reader = fixture.reader();
      const last = heads.at(-1)!;
      for (const head of heads) {
        expect(Buffer.from(await rootAt(reader, head.size))).toEqual(head.root);
        const proof = await consistencyProof(reader, head.size, last.size);
        expect(verifyConsistency(proof, head, last)).toBe(true);
      }
    });

    test('a tree grows from the size that it has, and from no other', async () => {
      await growBy(tree, edge, 10);
      const late = await openRightEdge(tree, 10);
      await growBy(tree, edge, 300);
      const root = edge.root();
      await expect(growBy(tree, late, 20)).rejects.toMatchObject({ code: 'store_unavailable' });
      expect(await tree.state()).toEqual({ size: 310, checkpoint: checkpointAt(309) });
      expect(Buffer.from(await rootAt(tree, 310))).toEqual(root);
    });

    test('trees of different origins are apart, and the one that was opened last is read', async () => {
      await growBy(tree, edge, 5);
      await tree.publish('the first');
      const other = await trees.open('turnlog/0190-b');
      expect(await other.state()).toEqual({ size: 0, checkpoint: undefined });
      const reader = fixture.reader();
      expect(await reader.readCheckpoint()).toBeUndefined();
      await growBy(other, await openRightEdge(other, 0), 7);
      expect(await reader.state()).toMatchObject({ size: 7 });
      expect(await tree.state()).toMatchObject({ size: 5 });
      const first = await trees.open(ORIGIN);
      expect(await first.readCheckpoint()).toBe('the first');
      expect(await fixture.reader().state()).toMatchObject({ size: 5 });
    });

    test('where bundles begin is kept, and put back where it was not known', async () => {
      await growBy(tree, edge, 600);
      expect(await tree.firstUnknownBundle(3)).toBeUndefined();
      expect(await tree.firstUnknownBundle(0)).toBeUndefined();
      expect(await tree.firstUnknownBundle(6)).toBe(3);
      await tree.putBundles(new Map([[4, checkpointAt(1_023)]]));
      expect(await tree.firstUnknownBundle(6)).toBe(3);
      await tree.putBundles(new Map([[3, checkpointAt(767)]]));
      expect(await tree.firstUnknownBundle(6)).toBe(5);
      expect(await fixture.reader().beforeBundle(4)).toEqual(checkpointAt(1_023));
      expect(await fixture.reader().beforeBundle(1)).toEqual(checkpointAt(255));
      await tree.putBundles(new Map());
    });

    test('a path that is none of a tile has nothing, wherever it leads', async () => {
      await growBy(tree, edge, 5);
      for (const path of ['state.json', 'tile/../state.json', 'tile/0/000.p/5/../5', ''])
        expect(await fixture.reader().read(path)).toBeUndefined();
    });
  });
}
