import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import { Kafka, logLevel } from 'kafkajs';
import { openKafkaPublisher } from '../../../infra/kafka/publisher.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { agentCreated, agentUpdated } from '../../support/builders/events.ts';
import { collectFrom, type Received } from '../../support/servers/kafka/kafkaConsumer.ts';
import { startKafkaServer } from '../../support/servers/kafka/kafkaServer.ts';
import { administer } from '../../support/servers/kafka/kafkaTopics.ts';
import { byKey, logByKey } from '../../support/servers/kafka/logByKey.ts';
import {
  publisherOptions,
  relayTo,
  topicsOf,
  uniquePrefix,
} from '../../support/servers/kafka/relay.ts';
import { idsOf, restorableLog } from '../../support/servers/kafka/restoredLog.ts';
import {
  agentId,
  appendAgents,
  appendMore,
  appendTo,
} from '../../support/stores/projections/projector.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { size } from '../../support/jest/size.ts';

const KILLS = size({ small: 3, full: 6 });

jest.setTimeout(400_000);
/** Of each publication and each reader; normally they take seconds. */
const LIMIT_MS = 120_000;

const RELAY_PROCESS = fileURLToPath(
  new URL('../../support/servers/kafka/relayProcess.ts', import.meta.url),
);
const PARTITIONS = 24;
const MAX_BYTES = 100_000;
const LARGE = agentCreated({ instruction: 'x'.repeat(2 * MAX_BYTES) });

const kafka = await startKafkaServer();
const onKafka = kafka ? describe : describe.skip;
const brokers = kafka?.brokers ?? '';

let folder: string;
let prefix: string;
let log: Awaited<ReturnType<typeof restorableLog>>;
const relays = new Set<ChildProcess>();
let relayOutput: string;

beforeEach(async () => {
  relayOutput = '';
  folder = await temporaryFolder();
  log = await restorableLog(folder);
  prefix = uniquePrefix();
});
afterEach(async () => {
  for (const relay of relays) relay.kill('SIGKILL');
  relays.clear();
  await log.close();
  await rm(folder, { recursive: true });
});
afterAll(async () => kafka?.close());

function spawnRelay(): void {
  const args = [RELAY_PROCESS, log.folder, brokers, prefix];
  const relay = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  for (const stream of [relay.stdout, relay.stderr])
    stream.on('data', (chunk) => {
      relayOutput = `${relayOutput}${chunk}`.slice(-4_000);
    });
  relays.add(relay);
}

async function killRelays(): Promise<void> {
  const ended = [...relays].filter((relay) => relay.exitCode !== null);
  if (ended.length > 0) throw new Error(`A relay ended by itself. The output: ${relayOutput}`);
  const exits = [...relays].map((relay) => once(relay, 'exit'));
  for (const relay of relays) relay.kill('SIGKILL');
  await Promise.all(exits);
  relays.clear();
}

async function untilPublished(): Promise<void> {
  const publisher = openKafkaPublisher(publisherOptions(brokers, prefix));
  const end = await log.store().head();
  const isPublished = async (): Promise<boolean> =>
    (await publisher.checkpoint().catch(() => undefined))?.position === end;
  const published = async (): Promise<void> => {
    while (!(await isPublished())) await sleep(100);
  };
  if (!(await resolvesWithin(published(), LIMIT_MS)))
    throw new Error(`The relays did not publish everything. Their output: ${relayOutput}`);
  await publisher.close();
}

async function read(topics: string[], wanted: number): Promise<Received[]> {
  const consumer = await collectFrom(brokers, topics);
  const complete = consumer.until((received) => received.length >= wanted);
  if (!(await resolvesWithin(complete, LIMIT_MS)))
    throw new Error(`A consumer received ${consumer.received.length} messages of ${wanted}.`);
  // What came too often would follow at once.
  await sleep(1_000);
  await consumer.close();
  return consumer.received;
}

/** Leaves the end of every partition to transactions that were aborted. */
async function abortAtTheEnds(topic: string): Promise<void> {
  const client = new Kafka({ brokers: brokers.split(','), logLevel: logLevel.NOTHING });
  const producer = client.producer({ transactionalId: `${prefix}.other`, maxInFlightRequests: 1 });
  await producer.connect();
  const transaction = await producer.transaction();
  const messages = Array.from({ length: PARTITIONS }, (_, partition) => ({
    partition,
    key: 'other',
    value: 'aborted',
  }));
  await transaction.send({ topic, messages });
  await transaction.abort();
  await producer.disconnect();
}

const createTopics = (): Promise<boolean> =>
  administer(brokers, (admin) =>
    admin.createTopics({
      topics: Object.values(topicsOf(prefix)).map((topic) => ({
        topic,
        numPartitions: PARTITIONS,
        configEntries: [{ name: 'max.message.bytes', value: String(MAX_BYTES) }],
      })),
      waitForLeaders: true,
    }),
  );

/** 300 agents that a copy is made of, 100 that it lacks, then the copy and 2,000 others. */
async function publishAndRestore(): Promise<{ lost: string[]; since: Set<string>; id: string }> {
  await createTopics();
  await appendTo(log.store(), 'agent-large', [LARGE, agentUpdated()]);
  await appendAgents(log.store(), 0, 300, 1);
  const kept = new Set([...(await logByKey(log.store())).values()].flat());
  await log.backUp();
  await appendAgents(log.store(), 300, 400, 1);
  await appendMore(log.store(), `agent-${agentId(0)}`, [agentUpdated({ name: 'lost' })]);
  spawnRelay();
  await untilPublished();
  await killRelays();
  const idIn = (entry: string): string => entry.split(' ')[1]!;
  const published = [...(await logByKey(log.store())).values()].flat();
  const lost = published.filter((entry) => !kept.has(entry)).map(idIn);
  await log.restore();
  await appendMore(log.store(), `agent-${agentId(0)}`, [agentUpdated({ name: 'since' })]);
  await appendMore(log.store(), 'agent-large', [agentUpdated({ name: 'since' })]);
  await appendAgents(log.store(), 1_000, 3_000, 1);
  const now = [...(await logByKey(log.store())).values()].flat();
  const since = new Set(now.filter((entry) => !kept.has(entry)).map(idIn));
  return { lost, since, id: await log.accept() };
}

async function expectEachOnce(
  { lost, since, id }: Awaited<ReturnType<typeof publishAndRestore>>,
  unmarked = 0,
): Promise<void> {
  const ofLog = await logByKey(log.store());
  const large = ofLog.get('large')!.map((entry) => entry.split(' ')[1]!);
  for (const [key] of ofLog) if (key === 'large' || !key.startsWith('agent_')) ofLog.delete(key);
  const total = [...ofLog.values()].flat().length + lost.length;
  const received = await read(Object.values(topicsOf(prefix)), total);
  const gone = new Set(lost);
  expect(
    idsOf(received)
      .filter((eventId) => gone.has(eventId))
      .toSorted(),
  ).toEqual(lost.toSorted());
  expect(received).toHaveLength(total);
  const inLog = received.filter(({ headers }) => !gone.has(headers['ce_id']!));
  expect(byKey(inLog)).toEqual(ofLog);
  const marked = inLog.filter(({ headers }) => headers['ce_restored'] !== undefined);
  expect(new Set(marked.map(({ headers }) => headers['ce_restored']))).toEqual(new Set([id]));
  // The parked key's is a dead letter.
  expect(marked).toHaveLength(since.size - 1 + unmarked);
  const dead = await read([`${prefix}.dead-letter`], large.length);
  expect(idsOf(dead)).toEqual(large);
}

onKafka('a log that was restored, and declared so', () => {
  test('has every event of it in the topics once and in order, though relays are killed all the time', async () => {
    const restored = await publishAndRestore();
    await abortAtTheEnds(topicsOf(prefix).agents);
    for (let kill = 0; kill < KILLS; kill += 1) {
      spawnRelay();
      spawnRelay();
      await sleep(1_000 + randomInt(3_000));
      await killRelays();
    }
    await abortAtTheEnds(topicsOf(prefix).agents);
    spawnRelay();
    spawnRelay();
    await untilPublished();
    await killRelays();
    await expectEachOnce(restored);
  });

  test('is not published a second time when the relay dies before its checkpoint', async () => {
    const restored = await publishAndRestore();
    const publisher = openKafkaPublisher(publisherOptions(brokers, prefix));
    const counted = { publications: 0, failures: 0 };
    const failing = relayTo(
      {
        ...publisher,
        async takeOver() {
          const publication = await publisher.takeOver();
          return {
            ...publication,
            publish(events, checkpoint) {
              counted.publications += 1;
              if (events.length > 0 && counted.publications !== 2)
                return publication.publish(events, checkpoint);
              counted.failures += 1;
              return Promise.reject(new Error('killed'));
            },
          };
        },
      },
      log.store(),
    );
    while (counted.failures < 3) await sleep(50);
    await failing.close();
    spawnRelay();
    await untilPublished();
    await killRelays();
    await expectEachOnce(restored);
  });
});
