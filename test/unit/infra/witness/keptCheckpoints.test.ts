import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openKeptCheckpoints } from '../../../../infra/witness/keptCheckpoints.ts';
import { LIMITS } from '../../../../shared/limits.ts';
import { temporaryFolder } from '../../../support/stores/sqlite/sqliteEventStore.ts';

const { signal } = new AbortController();
let folder: string;
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(() => rm(folder, { recursive: true }));

const read = (location: string) => openKeptCheckpoints(location).read(signal);

test('a file is one checkpoint, a folder one in each file, and hidden files are none', async () => {
  const file = join(folder, 'a');
  await writeFile(file, 'one');
  await writeFile(join(folder, 'b'), 'two');
  await writeFile(join(folder, '.c'), 'none');
  expect(await read(file)).toEqual([{ name: file, note: 'one' }]);
  expect(await read(folder)).toEqual([
    { name: file, note: 'one' },
    { name: join(folder, 'b'), note: 'two' },
  ]);
});

test('what is missing, too large or too much is told', async () => {
  expect(await read(join(folder, 'x'))).toEqual({ trouble: 'can’t be read (ENOENT)' });
  const large = 'x'.repeat(LIMITS.keptCheckpoints.fileBytes + 1);
  await writeFile(join(folder, 'large'), large);
  expect(await read(folder)).toEqual({
    trouble: 'has the file large, which has more than 65536 bytes',
  });
  const many = join(folder, 'many');
  await mkdir(many);
  for (let file = 0; file <= LIMITS.keptCheckpoints.files; file += 1)
    await writeFile(join(many, String(file)), '');
  expect(await read(many)).toEqual({ trouble: 'holds more than 1000 files' });
});

test('an address answers with one checkpoint, and what else it does is told', async () => {
  const server = createServer((request, response) => {
    if (request.url === '/kept') response.end('note');
    else if (request.url === '/large')
      response.end('x'.repeat(LIMITS.keptCheckpoints.fileBytes + 1));
    else response.writeHead(302, { location: '/kept' }).end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await read(`${url}/kept`)).toEqual([{ name: `${url}/kept`, note: 'note' }]);
  expect(await read(`${url}/large`)).toEqual({ trouble: 'has more than 65536 bytes' });
  expect(await read(`${url}/moved`)).toEqual({ trouble: 'answers with the status 302' });
  server.closeAllConnections();
  server.close();
  expect(await read(`${url}/kept`)).toEqual({
    trouble: expect.stringMatching(/^can’t be reached/),
  });
});
