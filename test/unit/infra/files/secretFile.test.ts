import { chmod, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createMasterKeyFile, readMasterKeys } from '../../../../infra/files/masterKeyFile.ts';
import { makeSigningKey, readSigningKeys } from '../../../../services/compose/signingKeys.ts';
import { newMasterKey } from '../../../../shared/eventlog/encryption/masterKeys.ts';
import { temporaryFolder } from '../../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder, 'the.key');
});
afterEach(() => rm(folder, { recursive: true }));

const refusal = (problem: string) =>
  expect.objectContaining({
    code: 'configuration_invalid',
    message: expect.stringContaining(problem),
  });

const KINDS = {
  'a master key file': {
    make: createMasterKeyFile,
    read: (at: string) => readMasterKeys(at).ids,
    how: 'text-keys new-master',
  },
  'a signing key file': { make: makeSigningKey, read: readSigningKeys, how: 'openssl genpkey' },
};

describe.each(Object.entries(KINDS))('%s', (_, { make, read, how }) => {
  test('is made for its owner alone, with one key, and nothing beside it', async () => {
    make(file);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(['the.key']);
    expect(read(file)).toHaveLength(1);
  });

  test('that is there is never replaced', async () => {
    make(file);
    const before = await readFile(file, 'utf8');
    make(file);
    expect(await readFile(file, 'utf8')).toBe(before);
    expect(await readdir(folder)).toEqual(['the.key']);
  });

  test('in a folder that is not there is refused', () => {
    expect(() => make(join(folder, 'none', 'the.key'))).toThrow(refusal("can't be made"));
  });

  test.each([0o604, 0o602, 0o666])(
    'that others may read or change (%#) is refused',
    async (mode) => {
      make(file);
      await chmod(file, mode);
      expect(() => read(file)).toThrow(refusal('chmod o-rwx'));
    },
  );

  test.each([0o440, 0o660])(
    'that its group may read, or write as on a volume with an fsGroup, is taken (%#)',
    async (mode) => {
      make(file);
      await chmod(file, mode);
      expect(read(file)).toHaveLength(1);
    },
  );

  test('that is not there, is a folder or is far too large is refused, and says how to make one', async () => {
    expect(() => read(file)).toThrow(refusal(how));
    await mkdir(file, { mode: 0o700 });
    expect(() => read(file)).toThrow(refusal("can't be used"));
    const large = join(folder, 'large.key');
    await writeFile(large, `${'#'.repeat(70_000)}\n${newMasterKey()}`, { mode: 0o600 });
    expect(() => read(large)).toThrow(refusal('larger than'));
  });
});
