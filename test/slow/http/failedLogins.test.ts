import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { apiClient, TEST_KEY, type Reply } from '../../support/http/service.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const NOBODYS = `tl_key_01kahz0b2re5v8k2s4n6t8w0y2_${'0'.repeat(64)}`;

let folder: string;
let server: ServerProcess;
let url: string;
beforeAll(async () => {
  folder = await temporaryFolder();
  server = startServerProcess({ DATA_DIR: folder, BOOTSTRAP_API_KEY: TEST_KEY });
  url = await server.ready;
});
afterAll(async () => {
  server.kill('SIGKILL');
  await server.exited;
  await rm(folder, { recursive: true });
});

const login = (key: string | undefined): Promise<Reply> => apiClient(url, key).get('/v1/models');

test('logins that fail are told once an address and ten seconds, without the key, delayed, and refused where too many wait; a valid key from the same address is served at once', async () => {
  expectFailure(await login(undefined), 'unauthorized');
  expect(server.errors()).not.toContain('logins failed');
  const first = await login('secret-of-somebody');
  expectFailure(first, 'unauthorized');

  const replies = await Promise.all(
    Array.from({ length: 200 }, (_, index) => login(index % 2 ? NOBODYS : `secret-${index}`)),
  );
  const refused = replies.filter(({ status }) => status === 429);
  expect(refused.length).toBeGreaterThan(100);
  for (const reply of refused) {
    expectFailure(reply, 'rate_limited');
    expect(Number(reply.headers.get('retry-after'))).toBeGreaterThan(0);
  }
  for (const reply of replies) expect([401, 429]).toContain(reply.status);
  expect(replies.filter(({ status }) => status === 401).length).toBeGreaterThan(10);

  const began = performance.now();
  expectFailure(await login('secret'), 'unauthorized');
  expect(performance.now() - began).toBeGreaterThan(1_500);

  const failing = Promise.all(Array.from({ length: 100 }, () => login('secret')));
  for (let round = 0; round < 5; round += 1) expect((await login(TEST_KEY)).status).toBe(200);
  await failing;

  const lines = server
    .errors()
    .split('\n')
    .filter((line) => line.includes('logins failed'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines[0]).toMatchObject({
    level: 'warn',
    address: '127.0.0.1',
    failures: 1,
    request_id: first.headers.get('x-request-id'),
  });
  expect(lines[0]).not.toHaveProperty('key_id');
  expect(lines.length).toBeLessThan(5);
  expect(server.errors()).not.toContain('secret');
});
