import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from '@jest/globals';
import { leafHash } from '../../../../../shared/transparency/tlog/merkle.ts';
import { openNote, signNote } from '../../../../../shared/transparency/tlog/note.ts';
import {
  formatVkey,
  noteSigner,
  parseVkey,
} from '../../../../../shared/transparency/tlog/noteKeys.ts';
import {
  consistencyProof,
  inclusionProof,
  rootAt,
} from '../../../../../shared/transparency/tlog/proofs.ts';
import { parseTilePath, tilePath } from '../../../../../shared/transparency/tlog/tiles.ts';
import {
  verifyConsistency,
  verifyInclusion,
} from '../../../../../shared/transparency/tlog/verify.ts';
import { entryOf, treeOf } from '../../../../support/fakes/memoryTiles.ts';
import {
  privateKeyOf,
  vectors,
  vectorsFolder,
  type Vectors,
} from '../../../../support/builders/vectors.ts';
import { hasGo, withoutGo } from '../../../../support/processes/go/tools.ts';

const LEAVES = 1300;
const base64 = (hashes: readonly Uint8Array[]): string[] =>
  hashes.map((hash) => Buffer.from(hash).toString('base64'));
const bytes = (hashes: readonly string[]): Buffer[] =>
  hashes.map((hash) => Buffer.from(hash, 'base64'));
const rootOf = new Map(vectors.Trees.map(({ Size, Root }) => [Size, Buffer.from(Root, 'base64')]));

test('the keys are those of Go, and written as Go writes them', () => {
  for (const { Name, Seed, Vkey } of vectors.Keys) {
    const { key } = noteSigner(Name, privateKeyOf(Seed));
    expect(formatVkey(key)).toBe(Vkey);
    expect(formatVkey(parseVkey(Vkey))).toBe(Vkey);
  }
});

test('a note is signed as Go signs it, and read as Go reads it', () => {
  for (const { Text, Note, Vkeys } of vectors.Notes) {
    const keys = Vkeys.map(parseVkey);
    const signers = vectors.Keys.slice(0, keys.length).map(({ Name, Seed }) =>
      noteSigner(Name, privateKeyOf(Seed)),
    );
    expect(signNote(Text, signers)).toBe(Note);
    const opened = openNote(Note, keys);
    expect(opened.text).toBe(Text);
    expect(opened.by.map(formatVkey)).toEqual(Vkeys);
  }
});

test.each(vectors.Refused.map(({ Why, Note }) => [Why, Note]))(
  'a note with %s is refused, as by Go',
  (_, note) => {
    const key = parseVkey(vectors.Keys[0]!.Vkey);
    expect(() => openNote(note, [key])).toThrow(expect.objectContaining({ code: 'proof_invalid' }));
  },
);

test('a tree has the roots that Go computes', async () => {
  const { tiles, edge } = await treeOf(LEAVES);
  for (const { Size, Root } of vectors.Trees)
    expect(Buffer.from(await rootAt(tiles, Size)).toString('base64')).toBe(Root);
  expect(edge.root().toString('base64')).toBe(vectors.Trees.at(-1)!.Root);
});

test('proofs of inclusion are those of Go, and hold', async () => {
  const { tiles } = await treeOf(LEAVES);
  for (const { Index, Size, Hashes } of vectors.Inclusion) {
    expect(base64(await inclusionProof(tiles, Index, Size))).toEqual(Hashes);
    const head = { size: Size, root: rootOf.get(Size)! };
    expect(verifyInclusion(bytes(Hashes), Index, leafHash(entryOf(Index)), head)).toBe(true);
  }
});

test('proofs of consistency are those of Go, and hold', async () => {
  const { tiles } = await treeOf(LEAVES);
  for (const { Index, Size, Hashes } of vectors.Consistency) {
    expect(base64(await consistencyProof(tiles, Index, Size))).toEqual(Hashes);
    const from = { size: Index, root: rootOf.get(Index)! };
    const to = { size: Size, root: rootOf.get(Size)! };
    expect(verifyConsistency(bytes(Hashes), from, to)).toBe(true);
  }
});

test('tiles have the paths that Go gives them', () => {
  for (const { Level, Index, Width, Path } of vectors.Paths) {
    const place = { level: Level, index: Index, width: Width };
    expect(tilePath(place)).toBe(Path);
    expect(parseTilePath(Path)).toEqual(place);
  }
});

const run = promisify(execFile);

if (!hasGo()) withoutGo('Go');
else
  test('Go writes the same vectors again', async () => {
    const { stdout } = await run('go', ['run', '.'], {
      cwd: vectorsFolder,
      maxBuffer: 16 * 1024 * 1024,
    });
    expect(JSON.parse(stdout) as Vectors).toEqual(vectors);
  }, 300_000);
