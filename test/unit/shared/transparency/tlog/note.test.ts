import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { LIMITS } from '../../../../../shared/limits.ts';
import {
  formatCheckpoint,
  parseCheckpoint,
} from '../../../../../shared/transparency/tlog/checkpoint.ts';
import { cosign, verifyCosignature } from '../../../../../shared/transparency/tlog/cosignature.ts';
import { EMPTY_ROOT } from '../../../../../shared/transparency/tlog/merkle.ts';
import {
  openNote,
  parseNote,
  signatureLine,
  signNote,
} from '../../../../../shared/transparency/tlog/note.ts';
import {
  COSIGNATURE,
  formatVkey,
  noteSigner,
  parseVkey,
} from '../../../../../shared/transparency/tlog/noteKeys.ts';
import { formatProof, parseProof } from '../../../../../shared/transparency/tlog/proofFile.ts';

const signer = (name: string, type?: number) =>
  noteSigner(name, generateKeyPairSync('ed25519').privateKey, type);
const refused = expect.objectContaining({ code: 'proof_invalid' });
const log = signer('turnlog/1');
const text = formatCheckpoint({ origin: 'turnlog/1', size: 7, root: EMPTY_ROOT });
const note = signNote(text, [log]);

test('a signature of a key that is not known is passed over, also under a known name', () => {
  const other = signer('turnlog/1');
  const both = signNote(text, [other, log]);
  expect(openNote(both, [log.key]).by).toEqual([log.key]);
  expect(() => openNote(note, [other.key])).toThrow(refused);
});

test('a second signature of a known key is refused, and of another one passed over', () => {
  const other = signer('other');
  expect(() => openNote(signNote(text, [log, log]), [log.key])).toThrow(refused);
  expect(openNote(signNote(text, [log, other, other]), [log.key]).by).toEqual([log.key]);
});

test('one wrong signature of a known key spoils a note that another one signed', () => {
  const other = signer('other');
  const line = signNote('something else\n', [other]).split('\n\n')[1]!;
  expect(() => openNote(note + line, [log.key, other.key])).toThrow(refused);
  expect(openNote(note + line, [log.key]).by).toEqual([log.key]);
});

test('a note is bounded in bytes and in signatures', () => {
  const large = 'x'.repeat(LIMITS.tlog.noteBytes);
  expect(() => parseNote(signNote(`${large}\n`, [log]))).toThrow(refused);
  const many = Array.from({ length: LIMITS.tlog.signatures + 1 }, () => log);
  expect(() => parseNote(signNote(text, many))).toThrow(refused);
  expect(parseNote(signNote(text, many.slice(1))).signatures).toHaveLength(LIMITS.tlog.signatures);
});

test.each([
  ['an empty line among the signatures', note.replace('— ', '\n— ').replace('\n\n\n', '\n\n\n')],
  ['a carriage return', note.replace('\n\n', '\r\n\r\n')],
  ['a lone surrogate', note.replace('turnlog', '\ud800')],
  [
    'base64 with bits that mean nothing',
    note.replace(/.=\n$/, (end) => `${end === 'B=\n' ? 'C' : 'B'}=\n`),
  ],
  ['two spaces before a signature', note.replace('— turnlog/1 ', '— turnlog/1  ')],
])('a note with %s is refused', (_, bad) => {
  expect(() => openNote(bad, [log.key])).toThrow(refused);
});

test.each([
  ['no root', 'a\n1\n'],
  ['a size with a zero before it', `a\n01\n${EMPTY_ROOT.toString('base64')}\n`],
  ['a size below zero', `a\n-1\n${EMPTY_ROOT.toString('base64')}\n`],
  ['a size that is not exact', `a\n9007199254740993\n${EMPTY_ROOT.toString('base64')}\n`],
  ['a short root', 'a\n1\nAAAA\n'],
  ['no origin', `\n1\n${EMPTY_ROOT.toString('base64')}\n`],
  ['an empty line of extension', `${text}\n`],
  ['no newline at the end', text.slice(0, -1)],
])('a checkpoint with %s is refused', (_, bad) => {
  expect(() => parseCheckpoint(bad)).toThrow(refused);
});

test('a checkpoint says what was put into it, with lines of extension or without', () => {
  const said = { origin: 'turnlog/1', size: 7, root: EMPTY_ROOT };
  expect(parseCheckpoint(text)).toEqual(said);
  expect(parseCheckpoint(`${text}an extension\n`)).toEqual(said);
});

test('a cosignature is of its text, its time and its witness', () => {
  const witness = signer('witness.example/w', COSIGNATURE);
  const line = cosign(text, witness, 1_700_000_000);
  expect(verifyCosignature(text, witness.key, line)).toBe(1_700_000_000);
  expect(verifyCosignature(text.replace('7', '8'), witness.key, line)).toBeUndefined();
  const later = Buffer.from(line.signature);
  later[7]! ^= 1;
  expect(verifyCosignature(text, witness.key, { ...line, signature: later })).toBeUndefined();
  const plain = signer('witness.example/w');
  expect(verifyCosignature(text, plain.key, line)).toBeUndefined();
  const cosigned = note + signatureLine(line);
  expect(openNote(cosigned, [log.key, witness.key]).by).toEqual([log.key]);
});

test.each([
  ['no vkey at all', 'turnlog/1'],
  ['the id of another key', formatVkey(log.key).replace(log.key.id, '00000000')],
  ['a type that is not known', formatVkey({ ...log.key, type: 2 })],
  ['a short key', `turnlog/1+${log.key.id}+AQID`],
])('%s is refused', (_, vkey) => {
  expect(() => parseVkey(vkey)).toThrow(refused);
});

test('a vkey of a witness has a key of its own type', () => {
  const witness = signer('w', COSIGNATURE);
  expect(parseVkey(formatVkey(witness.key)).type).toBe(COSIGNATURE);
  expect(parseVkey(formatVkey(witness.key)).id).not.toBe(log.key.id);
});

test('a proof is read as it was written', () => {
  const proof = { index: 3, hashes: [EMPTY_ROOT, EMPTY_ROOT], checkpoint: note };
  expect(parseProof(formatProof(proof))).toEqual(proof);
  const alone = { extra: Buffer.from('x'), index: 0, hashes: [], checkpoint: note };
  expect(parseProof(formatProof(alone))).toEqual(alone);
  expect(formatProof(alone)).toBe(`c2sp.org/tlog-proof@v1\nextra eA==\nindex 0\n\n${note}`);
});

test.each([
  [
    'another first line',
    formatProof({ index: 0, hashes: [], checkpoint: note }).replace('v1', 'v2'),
  ],
  ['no index', `c2sp.org/tlog-proof@v1\n\n${note}`],
  ['an index with a zero before it', `c2sp.org/tlog-proof@v1\nindex 01\n\n${note}`],
  ['extra data that is no base64', `c2sp.org/tlog-proof@v1\nextra ?\nindex 1\n\n${note}`],
  ['a short hash', `c2sp.org/tlog-proof@v1\nindex 1\nAAAA\n\n${note}`],
  [
    'more hashes than a tree has levels',
    formatProof({
      index: 0,
      hashes: Array.from({ length: 64 }, () => EMPTY_ROOT),
      checkpoint: note,
    }),
  ],
  ['no checkpoint', 'c2sp.org/tlog-proof@v1\nindex 1\n'],
  [
    'more bytes than are read',
    `c2sp.org/tlog-proof@v1\nindex 1\n\n${'x'.repeat(LIMITS.tlog.proofBytes)}`,
  ],
])('a proof with %s is refused', (_, text_) => {
  expect(() => parseProof(text_)).toThrow(refused);
});
