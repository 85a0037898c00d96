import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from '@jest/globals';
import { cosign } from '../../../../shared/transparency/tlog/cosignature.ts';
import { signatureLine, signNote } from '../../../../shared/transparency/tlog/note.ts';
import { COSIGNATURE, noteSigner } from '../../../../shared/transparency/tlog/noteKeys.ts';
import { witnessedTime } from '../../../../shared/transparency/witnessTime.ts';

const TEXT = 'log.test/1\n5\nAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n';
const key = () => generateKeyPairSync('ed25519').privateKey;
const log = noteSigner('log.test/1', key());
const witnesses = ['a', 'b', 'c'].map((name) => noteSigner(name, key(), COSIGNATURE));
const keys = witnesses.map((witness) => witness.key);
const SECONDS = 1_795_000_000;

/** A checkpoint that the witnesses cosigned at these times, in seconds. */
const cosigned = (times: readonly number[], text = TEXT): string =>
  signNote(TEXT, [log]) +
  times.map((time, index) => signatureLine(cosign(text, witnesses[index]!, time))).join('');

test('a time has passed when as many witnesses as wanted have said one that is not earlier', () => {
  const note = cosigned([SECONDS, SECONDS + 60, SECONDS + 120]);
  for (const [wanted, later] of [
    [1, 120],
    [2, 60],
    [3, 0],
  ] as const)
    expect(witnessedTime(note, { keys, wanted })).toBe((SECONDS + later) * 1_000);
  expect(witnessedTime(note, { keys, wanted: 4 })).toBeUndefined();
});

test('a cosignature of another text or of an unknown witness shows no time', () => {
  expect(witnessedTime(cosigned([SECONDS], `${TEXT}x\n`), { keys, wanted: 1 })).toBeUndefined();
  const others = keys.slice(1);
  expect(witnessedTime(cosigned([SECONDS]), { keys: others, wanted: 1 })).toBeUndefined();
  expect(witnessedTime(cosigned([]), { keys, wanted: 1 })).toBeUndefined();
  expect(witnessedTime('no note', { keys, wanted: 1 })).toBeUndefined();
});

test('one witness that says the same several times is one witness', () => {
  const note = cosigned([SECONDS]) + signatureLine(cosign(TEXT, witnesses[0]!, SECONDS + 60));
  expect(witnessedTime(note, { keys, wanted: 1 })).toBe((SECONDS + 60) * 1_000);
  expect(witnessedTime(note, { keys, wanted: 2 })).toBeUndefined();
});
