import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { readWitnessesFile } from '../../../../infra/witness/witnessesFile.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import {
  COSIGNATURE,
  ED25519,
  formatVkey,
  noteSigner,
} from '../../../../shared/transparency/tlog/noteKeys.ts';

let folder: string;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-witnesses-'));
  file = join(folder, 'witnesses.json');
});
afterAll(() => rm(folder, { recursive: true }));

const vkeyOf = (name: string, type = COSIGNATURE): string =>
  formatVkey(noteSigner(name, generateKeyPairSync('ed25519').privateKey, type).key);

async function read(content: unknown) {
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
  return readWitnessesFile(file);
}

test('names witnesses with their keys, and how many are wanted', async () => {
  const vkeys = [vkeyOf('one.test/w'), vkeyOf('two.test/w')];
  const { wanted, witnesses } = await read({
    wanted: 2,
    witnesses: [
      { url: 'https://one.test/prefix/', vkey: vkeys[0] },
      { url: 'http://127.0.0.1:7380', vkey: vkeys[1] },
    ],
  });
  expect(wanted).toBe(2);
  expect(witnesses.map(({ url, vkey }) => [url, vkey])).toEqual([
    ['https://one.test/prefix/', vkeys[0]],
    ['http://127.0.0.1:7380', vkeys[1]],
  ]);
});

test('is refused with all that is wrong with it', async () => {
  const good = vkeyOf('good.test/w');
  await expect(
    read({
      wanted: 9,
      witnesses: [
        { url: 'http://[', vkey: good },
        { url: 'https://x.test', vkey: good },
        { url: 'https://x.test', vkey: vkeyOf('log.test', ED25519) },
        { url: 'https://x.test', vkey: good.replace(/.$/, '') },
        { url: 'https://x.test', vkey: good.replace('good', 'bad') },
      ],
    }),
  ).rejects.toMatchObject({
    code: 'configuration_invalid',
    details: Object.fromEntries(
      [
        ['/wanted', 'must not be more than there are witnesses'],
        ['/witnesses/0/url', 'must be a URL'],
        ['/witnesses/1/vkey', 'has the name of another witness of the file'],
        [
          '/witnesses/2/vkey',
          'must be the key of a witness (cosignature/v1, type 0x04), and is the key of a log',
        ],
        ['/witnesses/3/vkey', expect.stringMatching(/^is not valid: /)],
        ['/witnesses/4/vkey', expect.stringMatching(/^is not valid: .* the id of another key/)],
      ].map(([path, message]) => [`${file}#${path as string}`, { path, message }]),
    ),
  });
});

test.each([
  ['no JSON', '{', /is not valid JSON/],
  ['no object', '[]', /must be object/],
  ['no witness', { wanted: 1, witnesses: [] }, /must NOT have fewer than 1 items/],
  [
    'nobody wanted',
    { wanted: 0, witnesses: [{ url: 'https://x', vkey: 'x' }] },
    /wanted must be >= 1/,
  ],
  [
    'an unknown field',
    { wanted: 1, witnesses: [{ url: 'https://x', vkey: 'x', name: 'y' }] },
    /name is not a known field/,
  ],
  [
    'credentials in a URL',
    { wanted: 1, witnesses: [{ url: 'https://me:secret@x', vkey: 'x' }] },
    /must be an http or https URL without credentials/,
  ],
  [
    'another kind of URL',
    { wanted: 1, witnesses: [{ url: 'file:///x', vkey: 'x' }] },
    /http or https/,
  ],
  [
    'too many',
    {
      wanted: 1,
      witnesses: Array.from({ length: LIMITS.witness.witnesses + 1 }, () => ({
        url: 'https://x',
        vkey: 'x',
      })),
    },
    /must NOT have more than 16 items/,
  ],
])('is refused with %s, and names the option', async (_what, content, why) => {
  await expect(read(content)).rejects.toThrow(why);
  await expect(read(content)).rejects.toThrow('LOG_WITNESSES_FILE');
});

test('is refused when it is not there', async () => {
  await expect(readWitnessesFile(join(folder, 'none.json'))).rejects.toThrow(
    /LOG_WITNESSES_FILE .*none\.json: the file can't be read \(ENOENT\)/,
  );
});
