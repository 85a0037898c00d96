/**
 * An example consumer: `KAFKA_BROKERS=127.0.0.1:9092 npm run example:consumer` prints sessions as
 * they happen, from the beginning of the topics. Begin your own from it (README.md): it reads
 * committed messages only, lets the SDK parse CloudEvents, and ignores what it does not know.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CloudEvent, Kafka as KafkaBinding, type KafkaMessage } from 'cloudevents';
import { Kafka, logLevel, type IHeaders, type SASLOptions } from 'kafkajs';

type Data = Record<string, unknown>;

const topics = [
  process.env['KAFKA_AGENTS_TOPIC'] ?? 'turnlog.agents.v1',
  process.env['KAFKA_SESSIONS_TOPIC'] ?? 'turnlog.sessions.v1',
];
const brokers = (process.env['KAFKA_BROKERS'] ?? '127.0.0.1:9092').split(',');
const { KAFKA_USERNAME: username, KAFKA_PASSWORD: password = '' } = process.env;
const security = {
  ssl: process.env['KAFKA_TLS'] === 'true',
  ...(username && {
    sasl: {
      mechanism: process.env['KAFKA_SASL_MECHANISM'] ?? 'scram-sha-512',
      username,
      password,
    } as SASLOptions,
  }),
};
// A group of its own for every run shows everything each time. A service keeps one name, and goes
// on where it was.
const groupId = process.env['KAFKA_GROUP'] ?? `turnlog-example-${process.pid}-${Date.now()}`;

const LINES: Readonly<Record<string, (data: Data) => string>> = {
  'turnlog.agent.created.v1': ({ name, model }) =>
    `agent "${String(name)}" was created, on ${String(model)}`,
  'turnlog.agent.deleted.v1': ({ name }) => `agent "${String(name)}" was deleted`,
  'turnlog.agent.erased.v1': ({ reason }) => `the agent was erased: ${String(reason)}`,
  'turnlog.session.erased.v1': ({ reason }) => `the session was erased: ${String(reason)}`,
  'turnlog.session.started.v1': ({ agent_id }) => `a session with ${String(agent_id)} began`,
  'turnlog.session.turn_started.v1': ({ turn, input, erased }) =>
    `${String(turn)} > ${erased ? '(erased)' : String(input)}`,
  'turnlog.session.tool_called.v1': ({ turn, tool, arguments: text, result }) =>
    `${String(turn)}   ${String(tool)} ${String(text)} = ${String(result)}`,
  'turnlog.session.turn_completed.v1': ({ turn, output, erased }) =>
    `${String(turn)} < ${erased ? '(erased)' : String(output)}`,
  'turnlog.session.turn_failed.v1': ({ turn, message }) => `${String(turn)} ! ${String(message)}`,
  'turnlog.session.turn_interrupted.v1': ({ turn, reason }) =>
    `${String(turn)} ! interrupted: ${String(reason)}`,
};

const asText = (headers: IHeaders = {}): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));

// Patient with brokers that are away for a while.
const retry = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 600 };
const consumer = new Kafka({
  brokers,
  ...security,
  clientId: 'turnlog-example',
  logLevel: logLevel.NOTHING,
  retry,
}).consumer({ groupId, readUncommitted: false, allowAutoTopicCreation: false });
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => void consumer.disconnect().finally(() => process.exit()));

/**
 * Waits for the topics, which do not exist before a relay has started for the first time: kafkajs
 * does not.
 */
async function subscribe(): Promise<void> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await consumer.subscribe({ topics, fromBeginning: true });
    } catch (error) {
      if ((error as { type?: unknown }).type !== 'UNKNOWN_TOPIC_OR_PARTITION') throw error;
      if (tries === 0)
        process.stderr.write(
          `Waiting for the topics ${topics.join(' and ')}, which the relay makes.\n`,
        );
      await sleep(500);
    }
  }
}

await consumer.connect();
await subscribe();
await consumer.run({
  eachMessage: async ({ message }) => {
    // A tombstone of a compacted topic: all of the key is gone, as the event before it said.
    if (message.value === null) return;
    const parts: KafkaMessage<string> = {
      key: String(message.key),
      value: String(message.value),
      headers: asText(message.headers),
      body: '',
    };
    const event = KafkaBinding.toEvent<Data>(parts);
    if (!(event instanceof CloudEvent) || !event.data) return;
    const line = LINES[event.type]?.(event.data);
    if (line !== undefined)
      process.stdout.write(`${event.time ?? ''}  ${event.subject ?? ''}  ${line}\n`);
  },
});
