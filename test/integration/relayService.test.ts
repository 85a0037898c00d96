import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from '@jest/globals';
import { collectFrom } from '../support/kafkaConsumer.ts';
import { startKafkaServer } from '../support/kafkaServer.ts';
import { topicsOf, uniquePrefix } from '../support/relay.ts';
import { startTestService } from '../support/service.ts';

const kafka = await startKafkaServer();
const onKafka = kafka ? describe : describe.skip;
const root = fileURLToPath(new URL('../../', import.meta.url));
afterAll(async () => kafka?.close());

/** A process's output up to the line by which all of these have come, in whatever order. */
async function untilLines(lines: AsyncIterable<string>, wanted: RegExp[]): Promise<string[]> {
  const printed: string[] = [];
  for await (const line of lines) {
    printed.push(line);
    if (wanted.every((pattern) => printed.some((text) => pattern.test(text)))) return printed;
  }
  throw new Error(`the process ended, having printed: ${printed.join('\n')}`);
}

onKafka('a service with KAFKA_BROKERS', () => {
  const prefix = uniquePrefix();
  const topics = topicsOf(prefix);
  const env = {
    KAFKA_BROKERS: kafka?.brokers ?? '',
    KAFKA_AGENTS_TOPIC: topics.agents,
    KAFKA_SESSIONS_TOPIC: topics.sessions,
    KAFKA_CHECKPOINT_TOPIC: `${prefix}.checkpoint`,
    KAFKA_TRANSACTIONAL_ID: `${prefix}.relay`,
    KAFKA_TAKEOVER_MS: '500',
  };

  test('relays conversations, which the example consumer prints as they happen once the topics exist; says how far it is; and can replay them', async () => {
    const example = spawn(process.execPath, ['infra/kafka/exampleConsumer.ts'], { cwd: root, env: { ...process.env, ...env, NODE_OPTIONS: '' }, stdio: ['ignore', 'pipe', 'pipe'] });
    const exited = once(example, 'exit');
    await untilLines(createInterface({ input: example.stderr }), [/Waiting for the topics/]);
    const service = await startTestService({ text: 'Hello back.' }, env);
    try {
      const agent = await service.createAgent({ name: 'Greeter' });
      const [question, answer] = [/session_\w+ {2}1 > Hello there/, /session_\w+ {2}1 < Hello back\./];
      const printing = untilLines(createInterface({ input: example.stdout }), [/agent_\w+ {2}agent "Greeter" was created/, question, answer]);
      expect((await service.post(`/v1/agents/${agent}/run`, { input: 'Hello there' })).status).toBe(200);
      // What is of one session is in order; agents are on a topic of their own, and there is no order between topics.
      const printed = await printing;
      expect(printed.findIndex((line) => question.test(line))).toBeLessThan(printed.findIndex((line) => answer.test(line)));

      let ready = await service.get('/health/ready');
      while (ready.body.data.relay.lag_ms !== 0) ready = await service.get('/health/ready');
      expect(ready.body.data).toMatchObject({ status: 'ready', relay: { state: 'relaying', position: expect.stringMatching(/^\d+$/), lag_ms: 0 } });

      const cli = promisify(execFile)(process.execPath, ['services/cli/main.ts', 'relay', 'replay', '--topic', `${prefix}.again`, '--only', 'sessions'], {
        cwd: root,
        env: { ...process.env, ...env, DATA_DIR: service.folder, LOG_LEVEL: 'silent', NODE_OPTIONS: '' },
      });
      const { stdout, stderr } = await cli;
      expect(stdout).toBe(`The events up to now are in ${prefix}.again.\n`);
      expect(stderr).toContain('100.0 %: 3 messages');
      const again = await collectFrom(env.KAFKA_BROKERS, [`${prefix}.again`]);
      const received = await again.until((messages) => messages.length >= 3);
      expect(received.map(({ headers }) => headers['ce_type'])).toEqual(['turnlog.session.started.v1', 'turnlog.session.turn_started.v1', 'turnlog.session.turn_completed.v1']);
      await again.close();
    } finally {
      example.kill('SIGTERM');
      await exited;
      await service.close();
    }
  }, 120_000);

  test('is degraded, but ready, while the brokers are away', async () => {
    const service = await startTestService(undefined, { ...env, KAFKA_BROKERS: '127.0.0.1:9' });
    try {
      let ready = await service.get('/health/ready');
      while (ready.body.data.relay.state !== 'retrying') ready = await service.get('/health/ready');
      expect(ready).toMatchObject({ status: 200, body: { data: { status: 'degraded', relay: { state: 'retrying' } } } });
      expect(await service.createAgent()).toMatch(/^agent_/);
    } finally {
      await service.close();
    }
  }, 60_000);
});
