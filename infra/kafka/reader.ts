import { randomUUID } from 'node:crypto';
import type { Consumer, Kafka } from 'kafkajs';
import { RETRY, withAdmin } from './client.ts';

/** A consumer that never commits offsets. */
export interface ConsumerReader {
  consumer: Consumer;
  /** Disconnects, and deletes the group. Never rejects. */
  end(): Promise<void>;
}

/**
 * Creates a consumer in a temporary group, `<prefix>.reader.<random>`, because kafkajs can read only as
 * a member of a group. A failure ends it. `fetchWaitMs`: how long a broker may wait for new messages.
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
