import { randomUUID } from 'node:crypto';
import type { Consumer, EachBatchPayload, Kafka } from 'kafkajs';
import { pauseFor } from '../../shared/pause.ts';
import { RETRY, withAdmin } from './client.ts';

const FETCH_WAIT_MS = 200;
const LOOK_MS = 50;
/** A topic that gives nothing for so long can't be read. */
const SILENCE_LIMIT_MS = 30_000;
/**
 * Answers of a partition's leader without a message after which there is no more that is committed:
 * the first may have been asked for before, and markers of transactions come with one of their own.
 */
const EMPTY_ANSWERS = 4;

interface Partition {
  /** `host:port` of its leader. */
  leader: string;
  /** Where it ended when the reading began. */
  high: bigint;
  /** The offset after the last message that came. */
  next: bigint;
  /** Answers of the leader since then. */
  empty: number;
}

const placeOf = (topic: string, partition: number): string => `${topic}/${partition}`;

/** The partitions that hold anything. */
function partitionsOf(kafka: Kafka, topics: readonly string[]): Promise<Map<string, Partition>> {
  return withAdmin(kafka, async (admin) => {
    const { brokers } = await admin.describeCluster();
    const addresses = new Map(brokers.map(({ nodeId, host, port }) => [nodeId, `${host}:${port}`]));
    const { topics: described } = await admin.fetchTopicMetadata({ topics: [...topics] });
    const partitions = new Map<string, Partition>();
    for (const { name, partitions: parts } of described) {
      const offsets = await admin.fetchTopicOffsets(name);
      for (const { partition, high, low } of offsets) {
        const leader = parts.find(({ partitionId }) => partitionId === partition)?.leader ?? -1;
        if (BigInt(high) > BigInt(low))
          partitions.set(placeOf(name, partition), {
            leader: addresses.get(leader) ?? '',
            high: BigInt(high),
            next: BigInt(low),
            empty: 0,
          });
      }
    }
    return partitions;
  });
}

/** A committed message is followed by its transaction's marker. */
const isRead = ({ next, high, empty }: Partition): boolean =>
  next >= high - 1n || empty >= EMPTY_ANSWERS;

interface Reading {
  topics: readonly string[];
  /** The group that it reads as begins so. */
  group: string;
  visit: (eventId: string) => void;
  signal: AbortSignal;
}

async function readThrough(
  consumer: Consumer,
  partitions: ReadonlyMap<string, Partition>,
  { topics, visit, signal }: Reading,
): Promise<void> {
  let crashed: Error | undefined;
  let heard = performance.now();
  consumer.on(consumer.events.CRASH, ({ payload }) => void (crashed = payload.error));
  consumer.on(consumer.events.REQUEST, ({ payload }) => {
    if (payload.apiName !== 'Fetch') return;
    heard = performance.now();
    for (const partition of partitions.values())
      if (partition.leader === payload.broker) partition.empty += 1;
  });
  async function eachBatch({ batch }: EachBatchPayload): Promise<void> {
    const partition = partitions.get(placeOf(batch.topic, batch.partition));
    for (const { headers } of batch.messages) visit(headers?.['ce_id']?.toString() ?? '');
    if (!partition) return;
    partition.next = BigInt(batch.lastOffset()) + 1n;
    partition.empty = 0;
  }
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: true });
  await consumer.run({ autoCommit: false, eachBatch });
  while (![...partitions.values()].every(isRead)) {
    signal.throwIfAborted();
    if (crashed) throw crashed;
    if (performance.now() - heard > SILENCE_LIMIT_MS)
      throw new Error(`the topics ${topics.join(', ')} could not be read`);
    await pauseFor(LOOK_MS, signal);
  }
}

/**
 * Visits the id of every event that was published and committed in these topics, each as often as
 * it is there. Nobody else may publish meanwhile. Errors: those of kafkajs, the signal's reason.
 */
export async function visitPublishedIds(kafka: Kafka, reading: Reading): Promise<void> {
  const partitions = await partitionsOf(kafka, reading.topics);
  if (partitions.size === 0) return;
  const groupId = `${reading.group}.reader.${randomUUID()}`;
  const consumer = kafka.consumer({
    groupId,
    maxWaitTimeInMs: FETCH_WAIT_MS,
    allowAutoTopicCreation: false,
    retry: { ...RETRY, restartOnFailure: async () => false },
  });
  try {
    await readThrough(consumer, partitions, reading);
  } finally {
    await consumer.disconnect().catch(() => undefined);
    await withAdmin(kafka, (admin) => admin.deleteGroups([groupId])).catch(() => undefined);
  }
}
