import { randomUUID } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { openAccount } from '../../../shared/accounts/commands.ts';
import { appendEvents, NO_STREAM } from '../../../shared/eventlog/append.ts';
import { sessionStarted, turnStarted } from '../../support/builders/events.ts';
import { expectFailure } from '../../support/http/failures.ts';
import { freePort } from '../../support/processes/freePort.ts';
import { holdProjection } from '../../support/stores/projections/heldProjection.ts';
import { asOperator, eventually } from '../../support/processes/operator.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, startTestService, TEST_KEY, type Client } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { AUTHORSHIP } from '../../support/builders/authorship.ts';

describe('a stream with an event that can not be applied', () => {
  let folder: string;
  let server: ServerProcess;
  let client: Client;

  const start = async (): Promise<void> => {
    server = startServerProcess({
      DATA_DIR: folder,
      BOOTSTRAP_API_KEY: TEST_KEY,
      LOG_LEVEL: 'warn',
    });
    client = apiClient(await server.ready, TEST_KEY);
  };
  const record = (stream: string, events: { type: string; data: object }[]) =>
    asOperator(folder, async ({ store }) => {
      const authorship = {
        ...AUTHORSHIP,
        account_id: 'acct_test',
        recorded_at: new Date().toISOString(),
      };
      await appendEvents(
        store,
        { stream, head: NO_STREAM },
        { events: events.map((event) => ({ id: randomUUID(), ...event })), authorship },
      );
    });
  const ready = () => client.get('/health/ready');
  // A line may come a moment later than an answer that shows the same.
  const logged = (line: RegExp) =>
    eventually(
      () => Promise.resolve(server.errors()),
      (errors) => line.test(errors),
    );
  const parked = (reply: Awaited<ReturnType<typeof ready>>) =>
    reply.body.data?.projection.parked_streams as object[];

  beforeAll(async () => {
    folder = await temporaryFolder();
    await start();
  });
  afterAll(async () => {
    server.kill('SIGKILL');
    await server.exited;
    await rm(folder, { recursive: true });
  });

  test('is parked: readiness is degraded and names it, the log says why, and all else is served', async () => {
    expect((await ready()).body.data.status).toBe('ready');
    await record('agent-agent_bad', [
      { type: 'agent.created.v1', data: { name: 'my secret name', instruction: 7 } },
    ]);
    const reply = await eventually(ready, (answer) => parked(answer).length > 0);
    expect(reply.status).toBe(200);
    expect(reply.body.data).toEqual({
      status: 'degraded',
      projection: {
        caught_up: true,
        parked_streams: [
          { stream: 'agent-agent_bad', revision: 0, event_type: 'agent.created.v1' },
        ],
      },
      replays: { state: 'active', running: 0 },
      runs_in_flight: 0,
      runs_waiting: 0,
      transparency_log: expect.objectContaining({ state: 'active' }),
      webhooks: { state: 'active', enabled: 0, failing: 0 },
    });
    await logged(/"level":"error".*agent-agent_bad.*was parked/);

    const { agent_id } = (
      await client.post('/v1/agents', { name: 'Good', instruction: 'x', model: 'offline-echo' })
    ).body.data;
    expect((await client.post(`/v1/agents/${agent_id}/run`, { input: 'hi' })).status).toBe(200);
    expect((await client.get('/v1/agents')).body.data).toEqual([
      expect.objectContaining({ name: 'Good' }),
    ]);
  });

  test('does not keep the service from starting, not even a session that was left with an open turn', async () => {
    const owner = (await readFile(join(folder, 'instance-id'), 'utf8')).trim();
    await record('session-session_bad', [
      sessionStarted('agent_bad'),
      turnStarted(1, { owner, deadline: '2026-01-01T00:00:00.000Z' }),
      { type: 'session.turn_completed.v1', data: { turn: 'one' } },
    ]);
    await eventually(ready, (answer) => parked(answer).length > 1);
    server.kill('SIGTERM');
    expect(await server.exited).toBe(0);
    await start();
    expect(parked(await ready()).length).toBe(2);
    await logged(/"stream":"session-session_bad".*is damaged/);
    expect((await client.get('/v1/agents')).status).toBe(200);
  });
});

describe('while the service starts', () => {
  test('it is live, is not ready, and answers 503 with Retry-After until the read models are up to date', async () => {
    const service = await startTestService();
    const port = await freePort();
    const client = apiClient(`http://127.0.0.1:${port}`, TEST_KEY);
    let release: (() => void) | undefined;
    try {
      const agent = await service.createAgent();
      await service.service().stop();
      await asOperator(service.folder, (operator) =>
        openAccount(
          operator,
          { account_id: 'acct_later', key_id: 'operator', request_id: 'test' },
          'later',
        ),
      );
      release = holdProjection(service.folder);
      const restarted = service.restart({ PORT: String(port) });

      const live = () => client.get('/health/live').catch(() => undefined);
      expect((await eventually(live, (answer) => answer !== undefined))!.status).toBe(200);
      for (const ask of [
        () => client.get('/health/ready'),
        () => client.get('/v1/agents'),
        () => client.post('/v1/agents', {}),
        () => client.post(`/v1/agents/${agent}/run`, { input: 'x' }),
      ]) {
        const reply = await ask();
        expect(expectFailure(reply, 'store_unavailable').error).toContain('starting');
        expect(reply.headers.get('retry-after')).toBe('1');
      }
      expect((await client.get('/openapi.json')).status).toBe(200);

      release();
      release = undefined;
      await restarted;
      expect((await client.get('/health/ready')).body.data).toMatchObject({
        status: 'ready',
        projection: { caught_up: true },
      });
      expect((await client.get(`/v1/agents/${agent}`)).status).toBe(200);
    } finally {
      release?.();
      await service.close();
    }
  });
});

test('readiness counts the runs in flight', async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const service = await startTestService(() => gate.then(() => ({ text: 'slow' })));
  try {
    const running = service.post(`/v1/agents/${await service.createAgent()}/run`, { input: 'x' });
    await service.model.received(1);
    expect((await service.get('/health/ready')).body.data.runs_in_flight).toBe(1);
    open();
    await running;
    expect((await service.get('/health/ready')).body.data.runs_in_flight).toBe(0);
  } finally {
    await service.close();
  }
});
