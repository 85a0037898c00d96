import { spawnSync } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { writeTar, type TarContent } from '../../../../infra/tar/writeTar.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-tar-'));
  file = join(folder, 'same.tar');
});
afterEach(() => rm(folder, { recursive: true }));

/** Writers wait for each other before the end of their pieces. */
function contentOf(text: string, meet: () => Promise<void> = async () => undefined): TarContent {
  async function* pieces(): AsyncGenerator<string> {
    yield text.repeat(100_000);
    await meet();
    yield text.repeat(100_000);
  }
  return {
    small: new Map([['manifest', text]]),
    last: { name: 'events.jsonl', pieces: pieces() },
    modified: new Date(0),
    signal: new AbortController().signal,
  };
}

/** Resolves for all once so many wait. */
function meeting(count: number): () => Promise<void> {
  const all = Promise.withResolvers<void>();
  let waiting = 0;
  return () => {
    if ((waiting += 1) === count) all.resolve();
    return all.promise;
  };
}

test('of two writers to one file one wins, the other fails, and nothing else is left', async () => {
  const meet = meeting(2);
  const outcomes = await Promise.allSettled(
    ['a', 'b'].map((text) => writeTar(file, contentOf(text, meet))),
  );
  expect(outcomes.map(({ status }) => status).toSorted()).toEqual(['fulfilled', 'rejected']);
  const lost = outcomes.find((outcome) => outcome.status === 'rejected');
  expect(lost?.reason).toMatchObject({
    code: 'configuration_invalid',
    message: `${file} exists already, or another command has just written it: it was left as it is.`,
  });
  const winner = outcomes[0]!.status === 'fulfilled' ? 'a' : 'b';
  const letters = (await readFile(file, 'latin1')).match(/[ab]{100000}/g)!.join('');
  expect([...new Set(letters)]).toEqual([winner]);
  expect(await readdir(folder)).toEqual(['same.tar']);
});

test('a file that exists is left as it is, before anything is read, unless it is to be replaced', async () => {
  await writeFile(file, 'mine');
  const content = contentOf('a', () => Promise.reject(new Error('it was read')));
  await expect(writeTar(file, content)).rejects.toMatchObject({ code: 'configuration_invalid' });
  expect(await readFile(file, 'utf8')).toBe('mine');
  await writeTar(file, { ...contentOf('a'), replace: true });
  expect(await readFile(file, 'latin1')).toContain('aaaa');
  expect(await readdir(folder)).toEqual(['same.tar']);
});

/** Ends at the call that would give the file its name, as a crash may. */
const CRASHING_WRITER = `
import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
for (const name of ['link', 'rename'])
  fs.promises[name] = async () => process.kill(process.pid, 'SIGKILL');
syncBuiltinESMExports();
const { writeTar } = await import(process.argv[1]);
await writeTar(process.argv[2], {
  small: new Map(),
  last: { name: 'events.jsonl', pieces: (async function* () { yield 'a'; })() },
  modified: new Date(0),
  signal: new AbortController().signal,
});`;

test('a crash before the file is whole leaves none of its name', async () => {
  const source = new URL('../../../../infra/tar/writeTar.ts', import.meta.url).href;
  const args = ['--input-type=module', '-e', CRASHING_WRITER, source, file];
  expect(spawnSync(process.execPath, args).signal).toBe('SIGKILL');
  expect(await readdir(folder)).toEqual([expect.stringMatching(/\.partial$/)]);
});

test('two writers that replace one file leave a whole one', async () => {
  const meet = meeting(2);
  await writeFile(file, 'mine');
  await Promise.all(
    ['a', 'b'].map((text) => writeTar(file, { ...contentOf(text, meet), replace: true })),
  );
  const letters = (await readFile(file, 'latin1')).match(/[ab]{100000}/g)!.join('');
  expect(new Set(letters).size).toBe(1);
  expect(await readdir(folder)).toEqual(['same.tar']);
});
