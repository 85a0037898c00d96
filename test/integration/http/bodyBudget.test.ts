import { rm } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { rawRequest } from '../../support/http/rawHttp.ts';
import { apiClient, TEST_KEY, type Client, type Reply } from '../../support/http/service.ts';
import { sendSlowly, type SlowSender } from '../../support/http/slowSender.ts';
import { clientWith, eventually, newKey } from '../../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';

const TWO_MIB = 2 * 1_048_576;

let folder: string;
let server: ServerProcess;
let url: string;
beforeAll(async () => {
  folder = await temporaryFolder();
  server = startServerProcess({
    DATA_DIR: folder,
    BOOTSTRAP_API_KEY: TEST_KEY,
    // A budget of 8 MiB and a little, and as much as half of it from the cache of sessions.
    NODE_OPTIONS: '--max-old-space-size=210 --max-semi-space-size=1',
  });
  url = await server.ready;
});
afterAll(async () => {
  server.kill('SIGKILL');
  await server.exited;
  await rm(folder, { recursive: true });
});

/** Announces a body of 2 MiB, and sends next to nothing of it. */
const announce = (key: string): Promise<SlowSender> =>
  sendSlowly(
    url,
    rawRequest('POST /v1/agents', [
      ['x-api-key', key],
      ['content-type', 'application/json'],
      ['content-length', String(TWO_MIB)],
    ]),
    { everyMs: 500 },
  );

test('bodies that are still to come keep an account and a process from taking more, and no other account from small requests', async () => {
  const first = apiClient(url, TEST_KEY);
  const issued = await Promise.all(Array.from({ length: 4 }, () => newKey(folder)));
  const others = await Promise.all(issued.map((key) => clientWith(url, key)));
  const create = (client: Client): Promise<Reply> =>
    client.post('/v1/agents', { name: 'x', instruction: 'x', model: 'offline-echo' });

  const held = [await announce(TEST_KEY), await announce(TEST_KEY)];
  const answerTo = async (key: string): Promise<string> => (await announce(key)).ended();
  const refused = await eventually(
    () => answerTo(TEST_KEY),
    (answer) => answer.startsWith('HTTP/1.1 429'),
  );
  expect(refused).toMatch(/\r\nretry-after: 2\r\n/i);
  expect(refused).toMatch(/\r\nconnection: close\r\n/i);
  expect(refused).toContain('rate_limited');

  held.push(await announce(issued[0]!.api_key));
  for (const client of others) expect((await create(client)).status).toBe(200);
  held.push(await announce(issued[1]!.api_key), await announce(issued[2]!.api_key));
  const full = await eventually(
    () => answerTo(issued[3]!.api_key),
    (answer) => answer.startsWith('HTTP/1.1 503'),
  );
  expect(full).toContain('overloaded');
  expect(full).toMatch(/\r\nretry-after: 2\r\n/i);
  expect((await create(others[3]!)).status).toBe(200);

  for (const { socket } of held) socket.destroy();
  const { body } = await eventually(
    () => first.post('/v1/agents', '{"name":'.padEnd(TWO_MIB)),
    ({ status }) => status !== 429 && status !== 503,
  );
  expect(body.code).toBe('invalid_json');
}, 60_000);
