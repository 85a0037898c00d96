/** Starts of a service over files that others may change, or that block whoever opens them. */
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { startServerProcess } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

let folder: string;
let data: string;
beforeEach(async () => {
  folder = await temporaryFolder();
  data = join(folder, 'data');
  await mkdir(data, { mode: 0o700 });
});
afterEach(() => rm(folder, { recursive: true }));

const makeFifo = (path: string) => execFileSync('mkfifo', ['-m', '600', path]);

async function refusal(env: Record<string, string> = {}): Promise<string> {
  const server = startServerProcess({ DATA_DIR: data, ...env });
  expect(await server.exited).toBe(1);
  return server.errors();
}

test('a data folder that every user may change is refused, with the command that mends it', async () => {
  await chmod(data, 0o777);
  expect(await refusal()).toContain(`chmod -R o-w ${data}`);
});

test.each(['webhooks.json', 'instance-id'])('a FIFO as %s is refused', async (name) => {
  makeFifo(join(data, name));
  expect(await refusal()).toContain('neither a file nor a folder');
});

test('an instance id that is damaged is refused: every run would be too large', async () => {
  const file = join(data, 'instance-id');
  await writeFile(file, 'x'.repeat(3_000_000), { mode: 0o600 });
  expect(await refusal()).toContain(
    `The file ${file} is damaged. Remove it: the next start creates another one.\n`,
  );
});

test('a file in the way is named, with the option that leads there', async () => {
  const file = join(folder, 'file');
  await writeFile(file, '', { mode: 0o600 });
  for (const keys of [file, join(file, 'below')])
    expect(await refusal({ KEYS_DIR: keys })).toMatch(
      /^The folder of the keys \S+ can't be used: a file is in the way.*\. Set KEYS_DIR /,
    );
  await writeFile(join(data, 'read-models'), '', { mode: 0o600 });
  expect(await refusal()).toContain(`a file is in the way (${join(data, 'read-models')})`);
});

test('a folder in the place of the lock file is named', async () => {
  const lock = join(data, 'server.lock');
  await mkdir(lock, { mode: 0o700 });
  expect(await refusal()).toContain(`a folder stands where a file should be (${lock})`);
});

test('a FIFO as the models file is refused', async () => {
  const file = join(folder, 'models.json');
  makeFifo(file);
  expect(await refusal({ MODELS_FILE: file })).toContain("can't be read");
});
