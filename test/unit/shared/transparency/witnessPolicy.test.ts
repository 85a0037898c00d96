import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { cosign } from '../../../../shared/transparency/tlog/cosignature.ts';
import { formatCheckpoint } from '../../../../shared/transparency/tlog/checkpoint.ts';
import { parseNote, signatureLine, signNote } from '../../../../shared/transparency/tlog/note.ts';
import {
  COSIGNATURE,
  formatVkey,
  noteSigner,
} from '../../../../shared/transparency/tlog/noteKeys.ts';
import { requireCosigners } from '../../../../shared/transparency/witnessPolicy.ts';

const keyPair = () => generateKeyPairSync('ed25519').privateKey;
const log = noteSigner('example.com/log', keyPair());
const text = formatCheckpoint({ origin: 'example.com/log', size: 5, root: Buffer.alloc(32) });
const privateKeys = [keyPair(), keyPair(), keyPair()];
const witnesses = privateKeys.map((key, at) => noteSigner(`w${at + 1}.example`, key, COSIGNATURE));
const vkeys = witnesses.map(({ key }) => formatVkey(key));

/** A checkpoint that the first two witnesses have cosigned. */
const note = parseNote(
  signNote(text, [log]) +
    witnesses
      .slice(0, 2)
      .map((witness) => signatureLine(cosign(text, witness, 1_790_000_000)))
      .join(''),
);

test('names the witnesses that have cosigned, and those that have not', () => {
  expect(requireCosigners(note, { witnesses: vkeys })).toEqual({
    cosigned: ['w1.example', 'w2.example'],
    not_cosigned: ['w3.example'],
  });
  expect(requireCosigners(note, { witnesses: vkeys, required: 2 }).cosigned).toHaveLength(2);
  expect(requireCosigners(note, { witnesses: [] })).toEqual({ cosigned: [], not_cosigned: [] });
});

test('refuses fewer than are required, and wants one by default', () => {
  expect(() => requireCosigners(note, { witnesses: vkeys, required: 3 })).toThrow(
    '3 of the witnesses that were given must have cosigned the checkpoint, and 2 have: w1.example, w2.example. Missing: w3.example.',
  );
  expect(() => requireCosigners(note, { witnesses: [vkeys[2]!] })).toThrow('None of the witnesses');
});

test('counts a witness once that is given twice, or under two names', () => {
  const alias = formatVkey(noteSigner('other.example', privateKeys[0]!, COSIGNATURE).key);
  for (const twice of [
    [vkeys[0]!, vkeys[0]!],
    [vkeys[0]!, alias],
    [alias, vkeys[0]!],
  ])
    expect(() => requireCosigners(note, { witnesses: twice, required: 2 })).toThrow(
      /must have cosigned|None of/,
    );
});
