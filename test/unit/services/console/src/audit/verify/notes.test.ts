import { expect, test } from '@jest/globals';
import {
  readCheckpoint,
  readKeys,
  requireSignature,
  signersOf,
} from '../../../../../../../services/console/src/audit/verify/notes.ts';
import { Mismatch } from '../../../../../../../services/console/src/audit/verify/mismatch.ts';
import { formatCheckpoint } from '../../../../../../../shared/transparency/tlog/checkpoint.ts';
import { cosign } from '../../../../../../../shared/transparency/tlog/cosignature.ts';
import { signatureLine, signNote } from '../../../../../../../shared/transparency/tlog/note.ts';
import { formatVkey } from '../../../../../../../shared/transparency/tlog/noteKeys.ts';
import { signer, witness } from '../../../../../../support/builders/bundles.ts';
import { vectors } from '../../../../../../support/builders/vectors.ts';

const TEXT = formatCheckpoint({ origin: signer.key.name, size: 7, root: Buffer.alloc(32, 1) });
const NOTE = signNote(TEXT, [signer]);
const KEYS = await readKeys(`${formatVkey(signer.key)}\n\n  ${formatVkey(witness.key)}  \n`);

test('reads the keys of Go, of logs and of witnesses, and none with the id of another', async () => {
  const text = vectors.Keys.map(({ Vkey }) => Vkey).join('\n');
  const keys = await readKeys(text);
  expect(keys.map(({ name }) => name)).toEqual(vectors.Keys.map(({ Name }) => Name));
  expect(KEYS.map(({ kind }) => kind)).toEqual(['log', 'witness']);
  await expect(readKeys(text.replace('+d6320af4+', '+d6320af5+'))).rejects.toThrow(
    'The verifier key of turnlog/0190 has the id of another key.',
  );
  await expect(readKeys('not a key')).rejects.toThrow('“not a key” is no verifier key');
});

test.each(vectors.Refused.map(({ Why, Note }) => [Why, Note]))(
  'a checkpoint with %s is refused, as by Go',
  async (_, note) => {
    const [key] = await readKeys(vectors.Keys[0]!.Vkey);
    const verify = async () => requireSignature(readCheckpoint(note), key!);
    await expect(verify()).rejects.toThrow(Mismatch);
  },
);

test('accepts the signature of the log, once, and refuses another text, key or a second signature', async () => {
  const [log] = KEYS;
  await requireSignature(readCheckpoint(NOTE), log!);
  const forged = readCheckpoint(NOTE.replace('\n7\n', '\n8\n'));
  await expect(requireSignature(forged, log!)).rejects.toThrow(
    'The checkpoint of 8 events is not signed by',
  );
  const twice = readCheckpoint(NOTE + NOTE.slice(TEXT.length + 1));
  await expect(requireSignature(twice, log!)).rejects.toThrow('is not signed by');
  const [other] = await readKeys(vectors.Keys[0]!.Vkey);
  await expect(requireSignature(readCheckpoint(NOTE), other!)).rejects.toThrow(
    'is not signed by turnlog/0190',
  );
});

test('says who signed, when each witness did, and whose signature is wrong, unknown or missing', async () => {
  const cosigned = NOTE + signatureLine(cosign(TEXT, witness, 1_767_225_600));
  const time = '2026-01-01T00:00:00.000Z';
  const log = { name: signer.key.name, role: 'Log' };
  const cosigner = { name: 'witness.example/w1', role: 'Witness' };
  const read = (note: string, keys = KEYS) => signersOf(readCheckpoint(note), keys);
  expect(await read(cosigned, [...KEYS, ...KEYS])).toMatchObject([
    { ...log, status: 'Valid' },
    { ...cosigner, status: 'Valid', time },
  ]);
  expect(await read(cosigned.replace('\n7\n', '\n8\n'))).toMatchObject([
    { ...log, status: 'Wrong' },
    { ...cosigner, status: 'Wrong', time: undefined },
  ]);
  expect(await read(NOTE)).toMatchObject([log, { ...cosigner, status: 'Missing' }]);
  expect(await read(cosigned, KEYS.slice(0, 1))).toMatchObject([
    log,
    { ...cosigner, status: 'Not checked: no key' },
  ]);
});
