import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, jest, test } from '@jest/globals';
import { createLocalBroker } from '../../../infra/local/kafka/localBroker.ts';
import { collectFrom } from '../../support/servers/kafka/kafkaConsumer.ts';
import { orSkip } from '../../support/servers/kafka/kafkaServer.ts';
import { untilTopicsExist } from '../../support/servers/kafka/kafkaTopics.ts';
import { eventually } from '../../support/processes/operator.ts';
import { topicsOf, uniquePrefix } from '../../support/servers/kafka/relay.ts';
import { startServerProcess, type ServerProcess } from '../../support/processes/serverProcess.ts';
import { apiClient, TEST_KEY, type Client } from '../../support/http/service.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { CERTIFICATE_FILE, KEY_FILE } from '../../support/servers/tls/files.ts';

/** Each test starts a process that loads everything and waits for a broker. */
jest.setTimeout(60_000);

const PASSWORD = 'the-right-password';
const folder = await temporaryFolder();

async function startSecureBroker() {
  const pemFile = join(folder, 'broker.pem');
  await writeFile(
    pemFile,
    (await readFile(KEY_FILE, 'utf8')) + (await readFile(CERTIFICATE_FILE, 'utf8')),
  );
  const broker = await createLocalBroker({
    folder: join(folder, 'kafka'),
    secure: { pemFile, username: 'relay', password: PASSWORD },
  });
  await broker.start();
  return broker;
}

const broker = await orSkip(startSecureBroker);
const onKafka = broker ? describe : describe.skip;
let server: ServerProcess | undefined;

afterEach(async () => {
  server?.kill('SIGTERM');
  await server?.exited;
});
afterAll(async () => {
  await broker?.stop();
  await rm(folder, { recursive: true });
});

onKafka('brokers that want TLS and a user', () => {
  async function start(prefix: string, env: Record<string, string>): Promise<Client> {
    const { agents, sessions } = topicsOf(prefix);
    const names = {
      KAFKA_AGENTS_TOPIC: agents,
      KAFKA_SESSIONS_TOPIC: sessions,
      KAFKA_CHECKPOINT_TOPIC: `${prefix}.checkpoint`,
      KAFKA_TRANSACTIONAL_ID: prefix,
    };
    const secure = {
      KAFKA_BROKERS: broker?.secureBrokers ?? '',
      KAFKA_TLS: 'true',
      NODE_EXTRA_CA_CERTS: CERTIFICATE_FILE,
      KAFKA_USERNAME: 'relay',
      KAFKA_PASSWORD: PASSWORD,
    };
    server = startServerProcess({
      DATA_DIR: join(folder, prefix),
      BOOTSTRAP_API_KEY: TEST_KEY,
      LOG_LEVEL: 'debug',
      ...names,
      ...secure,
      ...env,
    });
    return apiClient(await server.ready, TEST_KEY);
  }

  test.each(['scram-sha-512', 'plain'])(
    'get the events of a service that says who it is by %s',
    async (mechanism) => {
      const prefix = uniquePrefix();
      const client = await start(prefix, { KAFKA_SASL_MECHANISM: mechanism });
      const { status, body } = await client.post('/v1/agents', {
        name: 'Secure',
        instruction: 'Be brief.',
        model: 'offline-echo',
      });
      expect(status).toBe(200);
      await untilTopicsExist(broker?.brokers ?? '', [topicsOf(prefix).agents]);
      const consumer = await collectFrom(broker?.brokers ?? '', [topicsOf(prefix).agents]);
      const [created] = await consumer.until((messages) => messages.length > 0);
      await consumer.close();
      expect(created?.key).toBe(body.data.agent_id);
    },
  );

  test.each([
    ['with the wrong password', { KAFKA_PASSWORD: 'a-wrong-password' }, /authentication failed/i],
    [
      'that does not trust their certificate',
      { NODE_EXTRA_CA_CERTS: '' },
      /self-signed certificate/,
    ],
  ])('do without the events of a service %s, which says why in its log', async (_, env, why) => {
    const client = await start(uniquePrefix(), env);
    const { body } = await eventually(
      () => client.get('/health/ready'),
      (reply) => reply.body.data.relay.state === 'retrying',
    );
    expect(body.data.status).toBe('degraded');
    expect(server?.errors()).toMatch(why);
    for (const secret of [PASSWORD, 'a-wrong-password'])
      expect(server?.errors()).not.toContain(secret);
  });
});
