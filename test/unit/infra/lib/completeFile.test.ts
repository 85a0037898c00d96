import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { writeCompleteFile } from '../../../../infra/lib/completeFile.ts';

let folder: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'turnlog-file-'));
  file = join(folder, 'report.html');
});
afterEach(() => rm(folder, { recursive: true }));

test.each([{ replace: true }, {}])(
  'a failure in the middle leaves what was there, and nothing beside it: %j',
  async (options) => {
    if (options.replace) await writeFile(file, 'the old report');
    const broken = writeCompleteFile(file, options, async (target) => {
      await target.writeFile('half of the ');
      throw new Error('the log is damaged');
    });
    await expect(broken).rejects.toThrow('the log is damaged');
    expect(await readdir(folder)).toEqual(options.replace ? ['report.html'] : []);
    if (options.replace) expect(await readFile(file, 'utf8')).toBe('the old report');
  },
);
