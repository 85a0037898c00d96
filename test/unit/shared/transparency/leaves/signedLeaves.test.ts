import { recordedHash } from '../../../../../shared/eventlog/hashChain.ts';
import { expect, test } from '@jest/globals';
import { createSignedLeaves } from '../../../../../shared/transparency/leaves/signedLeaves.ts';
import { leafEntry } from '../../../../../shared/transparency/tlog/leaf.ts';
import { openRightEdge } from '../../../../../shared/transparency/tlog/rightEdge.ts';
import { someEvents } from '../../../../support/builders/prover.ts';
import { memoryTiles } from '../../../../support/fakes/memoryTiles.ts';

const SIZE = 700;
const FORGED = 'f'.repeat(64);
const hashes = someEvents(SIZE).map(recordedHash);

async function treeOfHashes(leaves: readonly string[]) {
  const tiles = memoryTiles();
  const edge = await openRightEdge(tiles, 0);
  for (const [index, hash] of leaves.entries()) edge.append(leafEntry(hash, index));
  tiles.write(edge.takeFiles());
  return { tiles, head: { treeId: 'tree', size: leaves.length, root: edge.root() } };
}

const genuine = await treeOfHashes(hashes);
const forged = await treeOfHashes(hashes.with(300, FORGED));
const leafAt = (index: number, hash = hashes[index]!) => ({ index, hash });

test('leaves lead to the checkpoint, and a whole tile is shown at once', async () => {
  const leads = createSignedLeaves();
  const { tiles, head } = genuine;
  for (const index of [0, 255, 256, 699])
    expect(await leads(tiles, head, leafAt(index))).toBe(true);
  expect(await leads(tiles, head, leafAt(256, FORGED))).toBe(false);
  expect(await leads(memoryTiles(), head, leafAt(300))).toBe(true);
});

test('leaves that were put into all files do not lead there', async () => {
  const leads = createSignedLeaves();
  expect(await leads(forged.tiles, genuine.head, leafAt(300, FORGED))).toBe(false);
  // The rest of a tile that was changed is not taken from it either.
  expect(await leads(forged.tiles, genuine.head, leafAt(301))).toBe(false);
});

test('what led to the checkpoint of one tree does not lead to that of another', async () => {
  const leads = createSignedLeaves();
  expect(await leads(genuine.tiles, genuine.head, leafAt(300))).toBe(true);
  const other = { ...forged.head, treeId: 'another' };
  expect(await leads(genuine.tiles, other, leafAt(300))).toBe(false);
});

test('a smaller checkpoint is led to by the same files', async () => {
  const { head } = await treeOfHashes(hashes.slice(0, 300));
  expect(await createSignedLeaves()(genuine.tiles, head, leafAt(299))).toBe(true);
});

test('a tile that is missing is named', async () => {
  await expect(createSignedLeaves()(memoryTiles(), genuine.head, leafAt(0))).rejects.toThrow(
    'The transparency log has no tile/0/000',
  );
});
