import { randomUUID } from 'node:crypto';
import type { Consumer, Kafka } from 'kafkajs';
import { RETRY, withAdmin } from './client.ts';

/** A consumer that reads for itself, and commits nothing. */
export interface ConsumerReader {
  consumer: Consumer;
  /** Leaves nothing behind. Never rejects. */
  end(): Promise<void>;
}

/**
 * A consumer in a group of its own: kafkajs can read only as a member of one, so it is made and
 * deleted, `<prefix>.reader.<random>`. A failure ends it. `fetchWaitMs`: how long a broker may wait
 * for something to come.
 */
export function createConsumerReader(
  kafka: Kafka,
  prefix: string,
  fetchWaitMs: number,
): ConsumerReader {
  const groupId = `${prefix}.reader.${randomUUID()}`;
  const consumer = kafka.consumer({
    groupId,
    maxWaitTimeInMs: fetchWaitMs,
    allowAutoTopicCreation: false,
    retry: { ...RETRY, restartOnFailure: async () => false },
  });
  return {
    consumer,
    async end() {
      await consumer.disconnect().catch(() => undefined);
      await withAdmin(kafka, (admin) => admin.deleteGroups([groupId])).catch(() => undefined);
    },
  };
}
