import { createHash } from 'node:crypto';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  openHeadsFile,
  requireWritable,
  writeHeadsFile,
} from '../../../../../services/cli/audit/headsFile.ts';
import type { SavedHead } from '../../../../../shared/eventlog/reading/compareHeads.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

const AT = '2026-11-22T10:00:00.000Z';
const never = new AbortController().signal;

const headsOf = (streams: readonly string[]) => ({
  log_id: 'the-first-event',
  heads: new Map(
    streams.map((stream, revision) => [
      stream,
      { revision, hash: createHash('sha256').update(stream).digest('hex') },
    ]),
  ),
});

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  file = join(folder, 'heads.jsonl');
});
afterEach(() => rm(folder, { recursive: true }));

const write = (streams: readonly string[]) => writeHeadsFile(file, headsOf(streams), AT, never);
const refused = (why: string | RegExp = /: These are no heads to compare with: /) =>
  expect(openHeadsFile(file)).rejects.toMatchObject({
    code: 'configuration_invalid',
    message: expect.stringMatching(why),
  });

test('has a line that names the log, a line for each stream in order, and the sha256 of them all', async () => {
  const { sha256 } = await write(['b', 'c', 'a']);
  const lines = (await readFile(file, 'utf8')).split('\n');
  expect(lines.map((line) => (line === '' ? undefined : JSON.parse(line)))).toEqual([
    { turnlog_heads: 1, log_id: 'the-first-event', streams: 3, at: AT },
    { stream: 'a', revision: 2, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    { stream: 'b', revision: 0, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    { stream: 'c', revision: 1, hash: expect.stringMatching(/^[0-9a-f]{64}$/) },
    { sha256 },
    undefined,
  ]);
  const before = lines.slice(0, -2).join('\n') + '\n';
  expect(createHash('sha256').update(before).digest('hex')).toBe(sha256);
});

test('gives back what was written, however many streams there are', async () => {
  const streams = Array.from({ length: 5_000 }, (_, index) => `session-ü${index}`);
  const { sha256 } = await write(streams);
  const { origin, heads } = await openHeadsFile(file);
  expect(origin).toEqual({
    turnlog_heads: 1,
    log_id: 'the-first-event',
    streams: 5_000,
    at: AT,
    sha256,
  });
  const read: SavedHead[] = [];
  for await (const head of heads()) read.push(head);
  expect(new Map(read.map(({ stream, ...head }) => [stream, head]))).toEqual(
    headsOf(streams).heads,
  );
});

test('is refused with any one byte changed, and where any part of its end is missing', async () => {
  await write(['a', 'b', 'c']);
  const whole = await readFile(file);
  await fc.assert(
    fc.asyncProperty(fc.nat(whole.length - 2), fc.integer({ min: 1, max: 255 }), async (at, by) => {
      await writeFile(file, whole.with(at, whole[at]! ^ by));
      await refused();
      await writeFile(file, whole.subarray(0, at));
      await refused();
    }),
  );
});

test.each([
  ['', 'the end is missing'],
  ['{"a":1}\n', 'the first line is none of `audit heads`'],
  ['x'.repeat(10_000_000), 'the first line is none of `audit heads`'],
])('refuses what is no such file: %.10j', async (text, why) => {
  await writeFile(file, text);
  await refused(why);
});

test('refuses a file that has lines after its last one', async () => {
  await write(['a']);
  await writeFile(file, (await readFile(file, 'utf8')) + '{}\n');
  await refused('lines follow the one that must be the last');
});

test('an interrupted writing leaves what was there, and nothing beside it', async () => {
  await write(['a']);
  const before = await readFile(file, 'utf8');
  const interrupt = AbortSignal.abort(new Error('Ctrl-C'));
  await expect(writeHeadsFile(file, headsOf(['b']), AT, interrupt)).rejects.toThrow('Ctrl-C');
  expect(await readFile(file, 'utf8')).toBe(before);
  expect(await readdir(folder)).toEqual(['heads.jsonl']);
});

test('of two writings at the same time, the later one leaves a complete file', async () => {
  const many = Array.from({ length: 20_000 }, (_, index) => `session-${index}`);
  const written = await Promise.all([
    write(many),
    writeHeadsFile(file, headsOf(many.slice(1)), '2026-11-22T10:00:00.001Z', never),
  ]);
  const { origin } = await openHeadsFile(file);
  expect(written).toContainEqual(origin);
  expect(await readdir(folder)).toEqual(['heads.jsonl']);
});

test('a file that exists is refused, unless it is to be replaced', async () => {
  await write(['a']);
  await expect(requireWritable(file)).rejects.toMatchObject({
    code: 'configuration_invalid',
    message: expect.stringContaining(`${file} exists already`),
  });
  await expect(requireWritable(file, { replace: true })).resolves.toBeUndefined();
});

test('a place where no file can be written is refused in a sentence that names it', async () => {
  const sentence = (path: string) => ({
    code: 'configuration_invalid',
    message: expect.stringContaining(path),
  });
  const nowhere = join(folder, 'missing', 'heads');
  await expect(requireWritable(nowhere)).rejects.toMatchObject(sentence(nowhere));
  await expect(requireWritable(folder)).rejects.toMatchObject(sentence(folder));
  await expect(openHeadsFile(nowhere)).rejects.toMatchObject(sentence(nowhere));
  await expect(requireWritable(file)).resolves.toBeUndefined();
});
