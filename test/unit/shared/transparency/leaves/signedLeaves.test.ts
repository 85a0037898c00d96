import { expect, test } from '@jest/globals';
import { logStream } from '../../../../../shared/eventlog/streams.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { createSignedLeaves } from '../../../../../shared/transparency/leaves/signedLeaves.ts';
import { recordedHash } from '../../../../../shared/transparency/proof/nameChange.ts';
import { formatCheckpoint } from '../../../../../shared/transparency/tlog/checkpoint.ts';
import { leafEntry } from '../../../../../shared/transparency/tlog/leaf.ts';
import { signNote } from '../../../../../shared/transparency/tlog/note.ts';
import { formatVkey, noteSigner } from '../../../../../shared/transparency/tlog/noteKeys.ts';
import { openRightEdge } from '../../../../../shared/transparency/tlog/rightEdge.ts';
import { agentCreated, treeDeclared } from '../../../../support/builders/events.ts';
import { recordHistory } from '../../../../support/builders/history.ts';
import { signingKey } from '../../../../support/builders/prover.ts';
import { memoryReads } from '../../../../support/fakes/memoryReads.ts';
import { memoryTiles, type MemoryTiles } from '../../../../support/fakes/memoryTiles.ts';

const SIZE = 700;
const key = signingKey();
const { record } = recordHistory();
const first = record({ stream: 'agent-agent_1' }, agentCreated());
const origin = `turnlog/${first.id}`;
const signer = noteSigner(origin, key);
const declaration = record(
  { stream: logStream(first.id) },
  { ...treeDeclared(), data: { origin, vkeys: [formatVkey(signer.key)] } },
);
const events = Array.from({ length: SIZE }, (_, index) =>
  index === 0 ? first : record({ stream: `agent-agent_${index + 1}` }, agentCreated()),
);
const log = {
  ...memoryReads([first, declaration]),
  firstEvent: async (): Promise<StoredEvent> => first,
};

/** The tree of these hashes in its first `size` leaves, and its checkpoint. */
async function treeOfHashes(hashes: readonly string[], by = signer) {
  const tiles = memoryTiles();
  const edge = await openRightEdge(tiles, 0);
  for (const [index, hash] of hashes.entries()) edge.append(leafEntry(hash, index));
  tiles.write(edge.takeFiles());
  const note = signNote(formatCheckpoint({ origin, size: hashes.length, root: edge.root() }), [by]);
  return { tiles, note };
}

const hashes = events.map(recordedHash);
const FORGED = 'f'.repeat(64);
const genuine = await treeOfHashes(hashes);
const forged = await treeOfHashes(hashes.with(300, FORGED));

async function leavesUnder(...notes: (string | undefined)[]) {
  let note: string | undefined;
  const leaves = createSignedLeaves(log, { readCheckpoint: async () => note });
  for (note of notes) await leaves.refresh();
  return (tiles: MemoryTiles, index: number, hash = hashes[index]!, size = SIZE) =>
    leaves.leads(tiles, { index, size }, hash);
}

test('leaves lead to the checkpoint, and a whole tile is shown at once', async () => {
  const leads = await leavesUnder(genuine.note);
  for (const index of [0, 255, 256, 699]) expect(await leads(genuine.tiles, index)).toBe(true);
  expect(await leads(genuine.tiles, 256, FORGED)).toBe(false);
  const empty = memoryTiles();
  expect(await leads(empty, 300)).toBe(true);
});

test('leaves that were put into all files do not lead there, whatever checkpoint is beside them', async () => {
  const other = noteSigner(origin, signingKey());
  const { note } = await treeOfHashes(hashes.with(300, FORGED), other);
  for (const notes of [[genuine.note], [genuine.note, note], [genuine.note, 'no note']]) {
    const leads = await leavesUnder(...notes);
    expect(await leads(forged.tiles, 300, FORGED)).toBe(false);
    // The rest of a tile that was changed is not taken from it either.
    expect(await leads(forged.tiles, 301)).toBe(false);
  }
});

test('an older checkpoint is passed over', async () => {
  const older = await treeOfHashes(hashes.slice(0, 100));
  const leads = await leavesUnder(genuine.note, older.note);
  expect(await leads(forged.tiles, 300, FORGED)).toBe(false);
});

test('how much was signed stays known when the checkpoint is gone, until another tree is begun', async () => {
  let note: string | undefined = genuine.note;
  const more = [first, declaration];
  const leaves = createSignedLeaves(
    {
      firstEvent: log.firstEvent,
      readStream: (...given) => memoryReads(more).readStream(...given),
    },
    { readCheckpoint: async () => note },
  );
  expect(leaves.size()).toBe(0);
  await leaves.refresh();
  for (note of [undefined, 'no note']) {
    await leaves.refresh();
    expect(leaves.size()).toBe(SIZE);
  }
  const replaced = { type: 'log.tree_replaced.v1', data: { reason: 'lost' } };
  more.push(record({ stream: logStream(first.id) }, replaced));
  note = undefined;
  await leaves.refresh();
  expect(leaves.size()).toBe(0);
});

test('a checkpoint of a declared tree that none of its keys has signed is named', async () => {
  const { note } = await treeOfHashes(hashes, noteSigner(origin, signingKey()));
  for (const forgedNote of [note, 'no note'])
    await expect(leavesUnder(forgedNote)).rejects.toMatchObject({ code: 'proof_invalid' });
});

test('nothing is said of leaves that no checkpoint covers, and of a tree that is made anew', async () => {
  expect(await (await leavesUnder(undefined))(genuine.tiles, 0)).toBeUndefined();
  const leads = await leavesUnder((await treeOfHashes(hashes.slice(0, 300))).note);
  expect(await leads(genuine.tiles, 299)).toBe(true);
  expect(await leads(genuine.tiles, 300)).toBeUndefined();
  expect(await leads(genuine.tiles, 5, hashes[5], 200)).toBeUndefined();
});

test('a tile that is missing is named', async () => {
  const leads = await leavesUnder(genuine.note);
  await expect(leads(memoryTiles(), 0)).rejects.toThrow('The transparency log has no tile/0/000');
});

test('a leaf leads to the checkpoint that was the newest when its proof began', async () => {
  const [earlier, later] = [await treeOfHashes(hashes.slice(0, 300)), genuine];
  let { note } = earlier;
  const leaves = createSignedLeaves(log, { readCheckpoint: async () => note });
  await leaves.refresh();
  const advancing: MemoryTiles = {
    ...genuine.tiles,
    async read(path) {
      note = later.note;
      await leaves.refresh();
      return genuine.tiles.read(path);
    },
  };
  expect(await leaves.leads(advancing, { index: 299, size: SIZE }, hashes[299]!)).toBe(true);
});
