/**
 * The relay's bars: `node test/bench/relay.ts`. Throughput from the embedded store, and the time
 * from an acknowledged run to the consumer at low load. The broker is that of KAFKA_BROKERS, or a
 * local one; consumer and service share this process, so the figures are on the safe side.
 */
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSqliteEventStore } from '../../infra/sqlite/eventStore/eventStore.ts';
import { collectFrom } from '../support/servers/kafka/kafkaConsumer.ts';
import { startKafkaServer } from '../support/servers/kafka/kafkaServer.ts';
import { appendTo } from '../support/stores/projections/projector.ts';
import {
  sessionStarted,
  toolCalled,
  turnCompleted,
  turnStarted,
} from '../support/builders/events.ts';
import {
  relayToKafka,
  topicsOf,
  uniquePrefix,
  type TestRelay,
} from '../support/servers/kafka/relay.ts';
import { startTestService } from '../support/http/service.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';

const SESSIONS = 12_500;
const EVENTS_PER_SESSION = 4;
const RUNS = 200;
const BETWEEN_RUNS_MS = 50;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
const percentile = (sorted: number[], part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0;

async function untilCaughtUp(relay: TestRelay): Promise<void> {
  for (;;) {
    const { state, lag_ms } = await relay.health();
    if (state === 'relaying' && lag_ms === 0) return;
    await sleep(5);
  }
}

async function throughput(brokers: string): Promise<void> {
  const folder = await temporaryFolder();
  const log = await openSqliteEventStore({ folder });
  for (let from = 0; from < SESSIONS; from += 500) {
    const events = [
      sessionStarted('agent_1'),
      turnStarted(1),
      toolCalled(1),
      turnCompleted(1, { output: 'An answer of usual length. '.repeat(20) }),
    ];
    await Promise.all(
      Array.from({ length: 500 }, (_, index) =>
        appendTo(log, `session-session_${from + index}`, events),
      ),
    );
  }
  const prefix = uniquePrefix();
  const total = SESSIONS * EVENTS_PER_SESSION;
  const began = performance.now();
  const relay = relayToKafka(brokers, prefix, log);
  await untilCaughtUp(relay);
  const relayed = performance.now() - began;
  const consumer = await collectFrom(brokers, Object.values(topicsOf(prefix)));
  const received = await consumer.until((messages) => messages.length >= total);
  say(
    `throughput: ${Math.round((total / relayed) * 1000)} events/s, ${total} events in ${(relayed / 1000).toFixed(2)} s with start and take-over; ${received.length} received (bar: 5000/s)`,
  );
  await consumer.close();
  await relay.close();
  await log.close();
  await rm(folder, { recursive: true });
}

async function latency(brokers: string): Promise<void> {
  const prefix = uniquePrefix();
  const topics = topicsOf(prefix);
  const service = await startTestService(undefined, {
    KAFKA_BROKERS: brokers,
    KAFKA_AGENTS_TOPIC: topics.agents,
    KAFKA_SESSIONS_TOPIC: topics.sessions,
    KAFKA_CHECKPOINT_TOPIC: `${prefix}.checkpoint`,
    KAFKA_TRANSACTIONAL_ID: prefix,
  });
  const agent = await service.createAgent();
  for (let ready = await service.get('/health/ready'); ready.body.data.relay.lag_ms !== 0;)
    ready = await service.get('/health/ready');
  const consumer = await collectFrom(brokers, Object.values(topics));
  const waits: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    const { body } = await service.post(`/v1/agents/${agent}/run`, { input: `Question ${run}` });
    const acknowledged = performance.now();
    const session = body.data.session_id as string;
    const isTheEnd = ({
      key,
      headers,
    }: {
      key: string;
      headers: Record<string, string>;
    }): boolean => key === session && headers['ce_type'] === 'turnlog.session.turn_completed.v1';
    const arrived =
      (await consumer.until((messages) => messages.some(isTheEnd))).find(isTheEnd)?.at ?? 0;
    waits.push(Math.max(0, arrived - acknowledged));
    await sleep(BETWEEN_RUNS_MS);
  }
  const sorted = waits.toSorted((a, b) => a - b);
  say(
    `latency from acknowledged run to consumer: p50 ${percentile(sorted, 0.5).toFixed(1)} ms, p90 ${percentile(sorted, 0.9).toFixed(1)} ms, p99 ${percentile(sorted, 0.99).toFixed(1)} ms (bar: p50 50 ms)`,
  );
  await consumer.close();
  await service.close();
}

const kafka = await startKafkaServer();
if (kafka) {
  say(`broker: ${kafka.name}`);
  await throughput(kafka.brokers);
  await latency(kafka.brokers);
  await kafka.close();
}
