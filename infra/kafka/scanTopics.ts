import type { Consumer, EachBatchPayload, Kafka, KafkaMessage } from 'kafkajs';
import { sleep } from '../../shared/lib/time/sleep.ts';
import { withAdmin } from './client.ts';
import { retryRequest } from './retryRequest.ts';
import { createConsumerReader } from './reader.ts';

const FETCH_WAIT_MS = 200;
const POLL_MS = 50;
/** A topic that has more messages and returns none for this long can't be read. */
const SILENCE_LIMIT_MS = 30_000;

interface Partition {
  /** The end of committed and aborted messages when the scan began. */
  end: bigint;
  /** The offset after the last one that was read. */
  next: bigint;
}

const partitionKey = (topic: string, partition: number): string => `${topic}/${partition}`;

/** The partitions that hold messages. */
function partitionsOf(kafka: Kafka, topics: readonly string[]): Promise<Map<string, Partition>> {
  return withAdmin(kafka, async (admin) => {
    const partitions = new Map<string, Partition>();
    for (const topic of topics) {
      const offsets = await retryRequest(() => admin.fetchTopicOffsets(topic));
      for (const { partition, high, low } of offsets)
        if (BigInt(high) > BigInt(low))
          partitions.set(partitionKey(topic, partition), { end: BigInt(high), next: BigInt(low) });
    }
    return partitions;
  });
}

/**
 * The end may consist of markers and aborted messages, which kafkajs reports as well. An empty response
 * does not mean that the end is reached: brokers also send one to throttled clients, and for partitions
 * that did not fit into the response.
 */
const isRead = ({ next, end }: Partition): boolean => next >= end;

interface Reading {
  topics: readonly string[];
  /** The prefix of the consumer group's name. */
  group: string;
  visit: (message: KafkaMessage) => void;
  signal: AbortSignal;
}

async function readThrough(
  consumer: Consumer,
  partitions: ReadonlyMap<string, Partition>,
  { topics, visit, signal }: Reading,
): Promise<void> {
  let crashed: Error | undefined;
  let progressAt = performance.now();
  consumer.on(consumer.events.CRASH, ({ payload }) => void (crashed = payload.error));
  consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
    const partition = partitions.get(partitionKey(payload.topic, payload.partition));
    const next = BigInt(payload.lastOffset) + 1n;
    // A consumer that loses its offset starts over.
    if (!partition || next <= partition.next) return;
    partition.next = next;
    progressAt = performance.now();
  });
  const eachBatch = async ({ batch }: EachBatchPayload): Promise<void> =>
    batch.messages.forEach(visit);
  await consumer.connect();
  await consumer.subscribe({ topics: [...topics], fromBeginning: true });
  await consumer.run({ autoCommit: false, eachBatch });
  while (![...partitions.values()].every(isRead)) {
    signal.throwIfAborted();
    if (crashed) throw crashed;
    if (performance.now() - progressAt > SILENCE_LIMIT_MS) {
      const [name, { next }] = [...partitions].find(([, partition]) => !isRead(partition))!;
      throw new Error(`${name} (topic/partition) can't be read from the offset ${next} on`);
    }
    await sleep(POLL_MS, signal);
  }
}

/**
 * Visits every committed message of these topics, some possibly several times. No other producer
 * may publish meanwhile.
 */
export async function scanTopics(kafka: Kafka, reading: Reading): Promise<void> {
  const partitions = await partitionsOf(kafka, reading.topics);
  if (partitions.size === 0) return;
  const { consumer, end } = createConsumerReader(kafka, reading.group, FETCH_WAIT_MS);
  try {
    await readThrough(consumer, partitions, reading);
  } finally {
    await end();
  }
}
