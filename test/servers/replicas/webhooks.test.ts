import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../../support/http/service.ts';
import { execute } from '../../support/servers/postgres/postgresDatabase.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { eventually } from '../../support/processes/operator.ts';
import { clientOf, health, replicaProcesses } from '../../support/processes/replicaProcesses.ts';
import type { ServerProcess } from '../../support/processes/serverProcess.ts';
import { startReceiver, verified, type Receiver } from '../../support/servers/webhookReceiver.ts';

const postgres = await startPostgresServer();
const LONG_MS = 240_000;

function suite(serverUrl: string): void {
  let replicas: Awaited<ReturnType<typeof replicaProcesses>>;
  let receiver: Receiver;
  let senders: ServerProcess[];
  let api: Client;
  let agent: string;

  const env = { WEBHOOKS_ALLOW_PRIVATE: 'true', VISIBILITY_WAIT_MS: '20000' };
  beforeAll(async () => {
    replicas = await replicaProcesses(serverUrl);
    receiver = await startReceiver();
    senders = [replicas.start('projector', env), replicas.start('projector', env)];
    api = await clientOf(replicas.start('api', env));
    const body = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };
    agent = (await api.post('/v1/agents', body)).body.data.agent_id as string;
  }, LONG_MS);
  afterAll(async () => {
    await replicas.close();
    await receiver.close();
  });

  const run = async (session_id?: string): Promise<string> => {
    const more = session_id === undefined ? {} : { session_id };
    const reply = await api.post(`/v1/agents/${agent}/run`, { input: 'hi', ...more });
    expect(reply.status).toBe(200);
    return reply.body.data.session_id as string;
  };

  /** Of a session, the revisions in the order in which they came first. */
  const seenOf = (session: string): number[] => [
    ...new Set(
      receiver.received
        .filter(({ body }) => body.subject === session)
        .map(({ body }) => body.streamrevision),
    ),
  ];
  const sees = (sessions: readonly string[], count: number) =>
    eventually(
      async () => sessions.map(seenOf),
      (seen) => seen.every(({ length }) => length === count),
    );

  async function active(): Promise<ServerProcess> {
    for (;;)
      for (const sender of senders) {
        const told = await health(await clientOf(sender));
        if (told?.webhooks?.state === 'active') return sender;
      }
  }

  /** Leaves the projector where it is, and has a new process send webhooks that projects nothing. */
  async function moveSending(): Promise<void> {
    const [projecting] = senders;
    const standby = replicas.start('projector', env);
    await standby.ready;
    senders.push(standby);
    projecting!.kill('SIGSTOP');
    await execute(
      replicas.databaseUrl,
      `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
        WHERE datname = current_database() AND application_name = 'turnlog webhooks' AND locktype = 'advisory' AND granted`,
    );
    // Within the silence that ends the other sessions of a stopped process.
    await sleep(1_000);
    projecting!.kill('SIGCONT');
    const client = await clientOf(standby);
    const sending = await eventually(
      () => health(client),
      (data) => data?.webhooks?.state === 'active',
    );
    expect(sending.projector.state).toBe('standing_by');
  }

  test(
    'another process goes on where the one that was killed ended: in order, and nothing is missing',
    async () => {
      const created = await api.post('/v1/webhooks', { url: receiver.url });
      const { webhook_id, secret } = created.body.data;
      const sessions = await Promise.all([run(), run(), run()]);
      await sees(sessions, 3);

      const sender = await active();
      // Messages are on their way when it dies.
      receiver.answer(undefined);
      await Promise.all(sessions.map((session) => run(session)));
      sender.kill('SIGKILL');
      await sender.exited;
      senders = senders.filter((other) => other !== sender);
      await Promise.all(sessions.map((session) => run(session)));
      receiver.answer(204);

      for (const seen of await sees(sessions, 7)) expect(seen).toEqual([0, 1, 2, 3, 4, 5, 6]);
      for (const message of receiver.received)
        expect(() => verified(message, secret)).not.toThrow();
      expect(await active()).toBe(senders[0]);
      // How far it is, is kept once a second.
      const told = await eventually(
        async () => (await api.get(`/v1/webhooks/${webhook_id}`)).body.data,
        ({ state, position }) => state === 'active' && position !== null,
      );
      expect(told).toMatchObject({ state: 'active', position: expect.any(String) });
    },
    LONG_MS,
  );

  test(
    'a process that serves no API sends no text of a session that another erases while messages wait',
    async () => {
      await moveSending();
      receiver.answer(204, {}, 4_000);
      const session = await run();
      const messages = () => receiver.received.filter(({ body }) => body.subject === session);
      await eventually(
        async () => messages(),
        ({ length }) => length > 0,
      );
      expect((await api.send('DELETE', `/v1/sessions/${session}`, '')).status).toBe(200);
      expect(messages()).toHaveLength(1);
      const [, ...later] = await eventually(
        async () => messages(),
        ({ length }) => length === 4,
      );
      receiver.answer(204);
      expect(later.map(({ body }) => body.type)).toEqual([
        'turnlog.session.turn_started.v1',
        'turnlog.session.turn_completed.v1',
        'turnlog.session.erased.v1',
      ]);
      for (const { body } of later.slice(0, 2)) expect(body.data).toMatchObject({ erased: true });
    },
    LONG_MS,
  );

  test(
    'a keyed request that comes again creates one webhook, with one secret',
    async () => {
      const headers = { 'idempotency-key': randomUUID() };
      const body = { url: `${receiver.url}/keyed` };
      const replies = await Promise.all(
        Array.from({ length: 4 }, () => api.post('/v1/webhooks', body, headers)),
      );
      for (const reply of replies) expect(reply.body).toEqual(replies[0]!.body);
      const list = (await api.get('/v1/webhooks')).body.data as { url: string }[];
      expect(list.filter(({ url }) => url === body.url)).toHaveLength(1);
    },
    LONG_MS,
  );
}

if (postgres) {
  describe('webhooks of several processes', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('webhooks of several processes');
}
