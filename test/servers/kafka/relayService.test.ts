import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, describe, expect, test } from '@jest/globals';
import { collectFrom } from '../../support/servers/kafka/kafkaConsumer.ts';
import { startKafkaServer } from '../../support/servers/kafka/kafkaServer.ts';
import { plainEnvironment } from '../../support/processes/plainEnvironment.ts';
import { topicsOf, uniquePrefix } from '../../support/servers/kafka/relay.ts';
import { startTestService, type TestService } from '../../support/http/service.ts';

const kafka = await startKafkaServer();
const onKafka = kafka ? describe : describe.skip;
const root = fileURLToPath(new URL('../../../', import.meta.url));
afterAll(async () => kafka?.close());

const PRINTED_WITHIN_MS = 40_000;

/**
 * Reads lines until all of `wanted` have been among them; resolves with the numbers of those lines.
 * Rejects with what there was.
 */
async function untilLines(input: Readable, wanted: RegExp[]): Promise<number[]> {
  const lines: string[] = [];
  const found = (): number[] =>
    wanted.map((pattern) => lines.findIndex((line) => pattern.test(line)));
  const reading = createInterface({ input, signal: AbortSignal.timeout(PRINTED_WITHIN_MS) });
  for await (const line of reading) {
    lines.push(line);
    if (!found().includes(-1)) return found();
  }
  throw new Error(`only these lines came: ${lines.join('\n')}`);
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

  test('relays sessions, which the example consumer prints as they happen once the topics exist; says how far it is; and can replay them', async () => {
    const example = spawn(process.execPath, ['examples/consumer.ts'], {
      cwd: root,
      env: { ...plainEnvironment(), ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const exited = once(example, 'exit');
    let service: TestService | undefined;
    try {
      await untilLines(example.stderr, [/Waiting for the topics/]);
      service = await startTestService({ text: 'Hello back.' }, env);
      const agent = await service.createAgent({ name: 'Greeter' });
      const printed = untilLines(example.stdout, [
        /session_\w+ {2}1 > Hello there/,
        /session_\w+ {2}1 < Hello back\./,
        /agent_\w+ {2}agent "Greeter" was created/,
      ]);
      expect((await service.post(`/v1/agents/${agent}/run`, { input: 'Hello there' })).status).toBe(
        200,
      );
      // Each key has its order; two topics have none between them.
      const [input, output] = await printed;
      expect(input).toBeLessThan(output!);

      let ready = await service.get('/health/ready');
      while (ready.body.data.relay.lag_ms !== 0) ready = await service.get('/health/ready');
      expect(ready.body.data).toMatchObject({
        status: 'ready',
        relay: { state: 'relaying', position: expect.stringMatching(/^\d+$/), lag_ms: 0 },
      });

      const cli = promisify(execFile)(
        process.execPath,
        [
          'services/cli/main.ts',
          'relay',
          'replay',
          '--topic',
          `${prefix}.again`,
          '--only',
          'sessions',
        ],
        {
          cwd: root,
          env: { ...plainEnvironment(), ...env, DATA_DIR: service.folder, LOG_LEVEL: 'silent' },
        },
      );
      const { stdout, stderr } = await cli;
      expect(stdout).toBe(`The events up to now are in ${prefix}.again.\n`);
      expect(stderr).toContain('100.0 %: 3 messages');
      const again = await collectFrom(env.KAFKA_BROKERS, [`${prefix}.again`]);
      const received = await again.until((messages) => messages.length >= 3);
      expect(received.map(({ headers }) => headers['ce_type'])).toEqual([
        'turnlog.session.started.v1',
        'turnlog.session.turn_started.v1',
        'turnlog.session.turn_completed.v1',
      ]);
      await again.close();
    } finally {
      example.kill('SIGTERM');
      await exited;
      await service?.close();
    }
  }, 120_000);

  test('is degraded, but ready, while the brokers are away', async () => {
    const service = await startTestService(undefined, { ...env, KAFKA_BROKERS: '127.0.0.1:9' });
    try {
      let ready = await service.get('/health/ready');
      while (ready.body.data.relay.state !== 'retrying') ready = await service.get('/health/ready');
      expect(ready).toMatchObject({
        status: 200,
        body: { data: { status: 'degraded', relay: { state: 'retrying' } } },
      });
      expect(await service.createAgent()).toMatch(/^agent_/);
    } finally {
      await service.close();
    }
  }, 60_000);
});
