import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import {
  startEventStoreDbProcess,
  type EventStoreDbProcess,
} from '../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { startTestService, type TestService } from '../support/http/service.ts';
import { eventually } from '../support/processes/operator.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../support/jest/size.ts';

/** Longer than the store's deadline of 10 s. */
const AWAY_MS = size({ small: 15_000, full: 30_000 });
/**
 * What a request waits for the store in all, and some air: nothing may hang beyond. Other suites run
 * beside the small size.
 */
const ANSWER_LIMIT_MS = size({ small: 40_000, full: 15_000 });
const RECOVERY_MS = 5_000;
const RECOVERED_WITHIN_MS = size({ small: 30_000, full: 6_000 });
const CLIENTS = 6;

let folder: string;
let server: EventStoreDbProcess;
let service: TestService;
beforeAll(async () => {
  folder = await temporaryFolder();
  server = await startEventStoreDbProcess({ folder });
  service = await startTestService(
    (request) => ({ text: `re: ${request.messages.at(-1)!.content}`, delay_ms: 5 }),
    { EVENTSTOREDB_URL: server.connectionString, VISIBILITY_WAIT_MS: '2000' },
  );
});
afterAll(async () => {
  await service.close();
  await server.kill('SIGTERM');
  await rm(folder, { recursive: true });
});

interface Call {
  input: string;
  session_id: string | undefined;
  status: number;
  code: string | undefined;
  retryAfter: string | null;
  ms: number;
  endedAt: number;
}

test('a store that is away for many seconds under load means 503 until it is back, and loses nothing that was acknowledged', async () => {
  const agent = await service.createAgent();
  const calls: Call[] = [];
  const load = { over: false };
  const converse = async (name: number): Promise<void> => {
    let session_id: string | undefined;
    for (let turn = 0; !load.over; turn += 1) {
      const input = `${name}-${turn}`;
      const began = performance.now();
      const { status, headers, body } = await service.post(`/v1/agents/${agent}/run`, {
        input,
        ...(session_id === undefined ? {} : { session_id }),
      });
      const endedAt = performance.now();
      if (status === 200) ({ session_id } = body.data);
      calls.push({
        input,
        session_id,
        status,
        code: body.code,
        retryAfter: headers.get('retry-after'),
        ms: endedAt - began,
        endedAt,
      });
      // A client that is told to try again in a second does not hammer.
      if (status !== 200) await sleep(200);
    }
  };
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, name) => converse(name)));
  await sleep(1_000);

  await server.kill();
  const awaySince = performance.now();
  await sleep(2_000);
  const health = await service.get('/health/ready');
  expect([health.status, health.body.code]).toEqual([503, 'store_unavailable']);
  await sleep(AWAY_MS - (performance.now() - awaySince));
  server = await startEventStoreDbProcess({ folder, port: server.port });
  const backAt = performance.now();
  await sleep(RECOVERY_MS);
  await eventually(
    () => service.get('/health/ready'),
    ({ status, body }) => status === 200 && body.data.projection.caught_up === true,
  );
  const recoveredAt = performance.now();
  await sleep(2_000);
  load.over = true;
  await clients;

  const unavailable = calls.filter(({ status }) => status !== 200);
  expect(unavailable.length).toBeGreaterThan(0);
  for (const { status, code, retryAfter } of unavailable)
    expect([status, code, Number(retryAfter) >= 1]).toEqual([503, 'store_unavailable', true]);
  expect(Math.max(...calls.map(({ ms }) => ms))).toBeLessThan(ANSWER_LIMIT_MS);
  expect(recoveredAt - backAt).toBeLessThan(RECOVERED_WITHIN_MS);
  const later = calls.filter(({ endedAt, ms }) => endedAt - ms > recoveredAt);
  expect(later.length).toBeGreaterThan(0);
  expect(later.filter(({ status }) => status !== 200)).toEqual([]);

  const acknowledged = calls.filter(({ status }) => status === 200);
  for (const [session_id, own] of Map.groupBy(acknowledged, (call) => call.session_id!)) {
    const { turns, status } = (await service.get(`/v1/sessions/${session_id}?limit=1000`)).body
      .data;
    expect(status).toBe('idle');
    for (const { input } of own)
      expect(
        turns
          .filter((turn: any) => turn.input === input)
          .map((turn: any) => [turn.status, turn.output]),
      ).toEqual([['completed', `re: ${input}`]]);
  }
  const sessions = (await service.get('/v1/sessions?limit=1000')).body.data as Array<{
    status: string;
  }>;
  expect(sessions.filter(({ status }) => status !== 'idle')).toEqual([]);
}, 180_000);
