import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import type { Client, Reply } from '../../support/http/service.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';
import { clientOf, replicaProcesses } from '../../support/processes/replicaProcesses.ts';

const postgres = await startPostgresServer();
const isReplayed = ({ headers }: Reply): boolean => headers.get('idempotency-replayed') === 'true';

function suite(serverUrl: string): void {
  let replicas: Awaited<ReturnType<typeof replicaProcesses>>;
  let one: Client;
  let other: Client;
  let agent: string;
  const body = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };

  beforeAll(async () => {
    replicas = await replicaProcesses(serverUrl);
    const env = { VISIBILITY_WAIT_MS: '20000' };
    one = await clientOf(replicas.start('api,projector', env));
    other = await clientOf(replicas.start('api', env));
    agent = (await one.post('/v1/agents', body)).body.data.agent_id as string;
  }, 120_000);
  afterAll(() => replicas.close());

  const onBoth = (path: string, content: object, key: string): Promise<Reply[]> =>
    Promise.all(
      [one, other, one, other].map((client) =>
        client.post(path, content, { 'idempotency-key': key }),
      ),
    );

  test('of both at once one creates the agent', async () => {
    const replies = await onBoth('/v1/agents', body, randomUUID());
    const ids = new Set(replies.map((reply) => reply.body.data.agent_id as string));
    expect(ids.size).toBe(1);
    expect(replies.filter((reply) => !isReplayed(reply))).toHaveLength(1);
    const { data } = (await other.get('/v1/agents')).body;
    expect(data.filter((each: { agent_id: string }) => ids.has(each.agent_id))).toHaveLength(1);
  });

  test('of both at once one runs the turn, of a new session and of one that is there', async () => {
    const path = `/v1/agents/${agent}/run`;
    const calls = replicas.model.requests.length;
    const [first, ...same] = await onBoth(path, { input: 'first' }, randomUUID());
    expect(first).toMatchObject({ status: 200 });
    const { session_id } = first!.body.data;
    const next = await onBoth(path, { input: 'next', session_id }, randomUUID());
    for (const reply of same) expect(reply.body).toEqual(first!.body);
    for (const reply of next) expect(reply.body).toEqual(next[0]!.body);
    expect(next.filter((reply) => !isReplayed(reply))).toHaveLength(1);
    expect((await other.get(`/v1/sessions/${session_id}`)).body.data.turns).toHaveLength(2);
    expect(replicas.model.requests).toHaveLength(calls + 2);
  });

  test('what one still runs the other waits for, and answers once it has ended', async () => {
    const path = `/v1/agents/${agent}/run`;
    const calls = replicas.model.requests.length;
    const impatient = await clientOf(replicas.start('api', { RUN_WAIT_MS: '1000' }));
    const headers = { 'idempotency-key': randomUUID() };
    const running = one.post(path, { input: 'slow' }, headers);
    await replicas.model.received(calls + 1);
    const reply = await impatient.post(path, { input: 'slow' }, headers);
    expectFailure(reply, 'idempotency_in_progress');
    const first = await running;
    const again = await other.post(path, { input: 'slow' }, headers);
    expect(again.body).toEqual(first.body);
    expect([isReplayed(first), isReplayed(again)]).toEqual([false, true]);
    expect(replicas.model.requests).toHaveLength(calls + 1);
  }, 120_000);
}

if (postgres) {
  describe('requests that come again to two replicas', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('requests that come again to two replicas');
}
