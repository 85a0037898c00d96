import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { expectFailure } from '../../support/http/failures.ts';
import { apiClient, type Client } from '../../support/http/service.ts';
import { eventually } from '../../support/processes/operator.ts';
import { clientOf, replicaProcesses } from '../../support/processes/replicaProcesses.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../../support/servers/postgres/postgresServer.ts';

const postgres = await startPostgresServer();

function suite(serverUrl: string): void {
  let replicas: Awaited<ReturnType<typeof replicaProcesses>>;
  let one: Client;
  let other: Client;
  let otherUrl: string;
  let agent: string;

  beforeAll(async () => {
    replicas = await replicaProcesses(serverUrl);
    const env = { VISIBILITY_WAIT_MS: '20000' };
    one = await clientOf(replicas.start('api,projector', env));
    const process = replicas.start('api', env);
    other = await clientOf(process);
    otherUrl = await process.ready;
    const body = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };
    agent = (await one.post('/v1/agents', body)).body.data.agent_id as string;
  }, 120_000);
  afterAll(() => replicas.close());

  const chatWith = async (issuer: Client, user: string): Promise<Client> => {
    const { body } = await issuer.post(`/v1/agents/${agent}/chat-tokens`, { user });
    return apiClient(otherUrl, body.data.token as string);
  };

  test('a token that one replica issued runs the agent and reads its session on the other', async () => {
    const chat = await chatWith(one, 'ada');
    const run = await chat.post(`/v1/agents/${agent}/run`, { input: 'Hi' });
    expect(run.status).toBe(200);
    const { session_id } = run.body.data as { session_id: string };
    expect((await chat.get(`/v1/sessions/${session_id}`)).status).toBe(200);
    // The user is the same, whichever replica names it.
    const sameUser = await chatWith(other, 'ada');
    expect((await sameUser.get(`/v1/sessions/${session_id}`)).status).toBe(200);
    const stranger = await chatWith(other, 'bob');
    expectFailure(await stranger.get(`/v1/sessions/${session_id}`), 'session_not_found');
  });

  test('an agent that one replica deletes ends its tokens on the other', async () => {
    const chat = await chatWith(one, 'ada');
    await one.send('DELETE', `/v1/agents/${agent}`, '');
    const refused = await eventually(
      () => chat.post(`/v1/agents/${agent}/run`, { input: 'Hi' }),
      ({ status }) => status !== 200,
    );
    expectFailure(refused, 'unauthorized');
  });
}

if (postgres) {
  describe('chat tokens of two replicas', () => suite(postgres.url));
  afterAll(postgres.close);
} else {
  withoutPostgres('chat tokens of two replicas');
}
