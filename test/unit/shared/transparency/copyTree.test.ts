import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openFileTileTrees } from '../../../../infra/files/tileStore.ts';
import type { Checkpoint, Position } from '../../../../shared/ports/eventStore.ts';
import { copyTree } from '../../../../shared/transparency/copyTree.ts';
import type { TileStore } from '../../../../shared/transparency/tileStore.ts';
import { rootAt } from '../../../../shared/transparency/tlog/proofs.ts';
import { openRightEdge } from '../../../../shared/transparency/tlog/rightEdge.ts';
import { formatCheckpoint } from '../../../../shared/transparency/tlog/checkpoint.ts';
import { signNote } from '../../../../shared/transparency/tlog/note.ts';
import { noteSigner } from '../../../../shared/transparency/tlog/noteKeys.ts';
import { signingKey } from '../../../support/builders/prover.ts';
import { entryOf } from '../../../support/fakes/memoryTiles.ts';
import { temporaryFolder } from '../../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let from: TileStore;
let to: TileStore;
beforeEach(async () => {
  folder = await temporaryFolder();
  from = await openFileTileTrees(join(folder, 'from')).open('test/log');
  to = await openFileTileTrees(join(folder, 'to')).open('test/log');
});
afterEach(() => rm(folder, { recursive: true }));

/** The last event before a leaf. */
const before = (leaf: number): Checkpoint => ({
  log_id: 'log',
  position: String(leaf) as Position,
  event_id: `event-${leaf}`,
  event_hash: 'hash',
});

/** Grows the source to a size, in one step, as a prover does. */
async function growTo(size: number): Promise<void> {
  const { size: first } = await from.state();
  const edge = await openRightEdge(from, first);
  const bundles = new Map<number, Checkpoint>();
  for (let leaf = first; leaf < size; leaf += 1) {
    if (leaf > 0 && leaf % 256 === 0) bundles.set(leaf / 256, before(leaf));
    edge.append(entryOf(leaf));
  }
  const state = { size, checkpoint: before(size) };
  await from.grow({ from: first, files: edge.takeFiles(), bundles, state });
}

const signer = noteSigner('test/log', signingKey());
const signed = (size: number): string =>
  signNote(formatCheckpoint({ origin: 'test/log', size, root: Buffer.alloc(32) }), [signer]);

const copy = async (options: Partial<Parameters<typeof copyTree>[0]> = {}): Promise<boolean> =>
  copyTree({
    from,
    to,
    state: await from.state(),
    checkpoint: signed(0),
    signal: new AbortController().signal,
    onProgress: () => undefined,
    ...options,
  });

async function expectSameTree(size: number): Promise<void> {
  expect(await to.state()).toEqual({ size, checkpoint: before(size) });
  expect(await rootAt(to, size)).toEqual(await rootAt(from, size));
  expect(await to.firstUnknownBundle(Math.ceil(size / 256))).toBeUndefined();
  expect(await to.beforeBundle(1)).toEqual(before(256));
  // It can be continued.
  await openRightEdge(to, size);
}

test('copies the leaves of a moment although the tree grows meanwhile, with the checkpoint', async () => {
  await growTo(700);
  await growTo(17_001);
  const state = await from.state();
  const steps: number[] = [];
  let grown: Promise<void> | undefined;
  await growTo(17_300);
  const done = await copy({
    state,
    onProgress(leaves) {
      steps.push(leaves);
      grown ??= growTo(18_000);
    },
  });
  await grown;
  expect([done, steps]).toEqual([true, [16_384, 17_001]]);
  expect(await to.readCheckpoint()).toBe(signed(0));
  await expectSameTree(17_001);
  expect(await readdir(join(folder, 'to'))).toContain('.current');
}, 30_000);

test('continues after an interruption, and from any size', async () => {
  await growTo(17_000);
  const stop = new AbortController();
  expect(await copy({ signal: stop.signal, onProgress: () => stop.abort() })).toBe(false);
  expect((await to.state()).size).toBe(16_384);
  expect(await to.readCheckpoint()).toBeUndefined();
  expect(await copy()).toBe(true);
  await growTo(17_900);
  expect(await copy()).toBe(true);
  await expectSameTree(17_900);
}, 30_000);

test('copies a checkpoint of the empty tree, and refuses a copy that is larger', async () => {
  expect(await copy()).toBe(true);
  expect(await to.readCheckpoint()).toBe(signed(0));
  await growTo(300);
  expect(await copy()).toBe(true);
  await expect(copy({ state: { size: 299, checkpoint: before(299) } })).rejects.toMatchObject({
    code: 'proof_invalid',
  });
});

test('has the tiles of its checkpoint, which the tree has outgrown', async () => {
  for (const size of [255, 513, 540, 700]) await growTo(size);
  expect(await copy({ checkpoint: signed(540) })).toBe(true);
  expect(await rootAt(to, 540)).toEqual(await rootAt(from, 540));
  await expectSameTree(700);
});

test('names a tile that is missing', async () => {
  await growTo(300);
  await rm(join(folder, 'from', 'test', 'log', 'tile', '0', '000'));
  await expect(copy()).rejects.toMatchObject({
    code: 'proof_invalid',
    message: expect.stringContaining('tile/0/000'),
  });
});
