import { generateKeyPairSync } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { readSigningKeys } from '../../../services/compose/signingKeys.ts';
import { openNote } from '../../../shared/transparency/tlog/note.ts';
import { parseVkey } from '../../../shared/transparency/tlog/noteKeys.ts';
import { openOneFileTree } from '../../../infra/files/tileReader.ts';
import { startTestService } from '../../support/http/service.ts';
import { runCli } from '../../support/processes/cliProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const OWN = { mode: 0o600 };

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder, 'key.pem');
});
afterEach(() => rm(folder, { recursive: true }));

const pemOf = (type: 'ed25519' | 'ed448'): string =>
  (type === 'ed25519' ? generateKeyPairSync('ed25519') : generateKeyPairSync('ed448')).privateKey
    .export({ type: 'pkcs8', format: 'pem' })
    .toString();

test('all keys of a file are read', async () => {
  await writeFile(file, `${pemOf('ed25519')}\n${pemOf('ed25519')}`, OWN);
  expect(readSigningKeys(file)).toHaveLength(2);
});

test.each([
  ['nothing', '', 'holds 0 private keys'],
  ['too many keys', Array.from({ length: 9 }, () => pemOf('ed25519')).join(''), 'holds 9 private'],
  ['a key of another kind', pemOf('ed448'), 'not an Ed25519 key'],
  [
    'a cut key',
    `-----BEGIN PRIVATE KEY-----\nMC4C\n-----END PRIVATE KEY-----\n`,
    'incomplete private key',
  ],
])('a file with %s is refused, and nothing of it is quoted', async (_, text, sentence) => {
  await writeFile(file, text, OWN);
  expect(() => readSigningKeys(file)).toThrow(
    expect.objectContaining({
      code: 'configuration_invalid',
      message: expect.stringContaining(sentence),
    }),
  );
});

test('audit vkey prints what verifies the checkpoints of the service', async () => {
  const service = await startTestService();
  try {
    let note: string | undefined;
    while (note === undefined)
      note = await openOneFileTree(join(service.folder, 'tlog')).readCheckpoint();
    const { out } = await runCli(service.folder, 'audit', 'vkey');
    expect(openNote(note, [parseVkey(out.trim())]).by).toHaveLength(1);
  } finally {
    await service.close();
  }
});
