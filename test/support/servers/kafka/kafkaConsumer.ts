import { randomUUID } from 'node:crypto';
import { Kafka, logLevel } from 'kafkajs';

export interface Received {
  topic: string;
  partition: number;
  offset: string;
  key: string;
  /** Null of a tombstone. */
  value: string | null;
  headers: Record<string, string>;
  /** performance.now() of its arrival. */
  at: number;
}

export interface CollectingConsumer {
  received: Received[];
  /** Resolves when `done` says so of all that has been received. */
  until: (done: (received: Received[]) => boolean) => Promise<Received[]>;
  close: () => Promise<void>;
}

/**
 * Reads topics from their beginnings, committed messages only, and keeps everything. Survives
 * restarts of the broker.
 */
export async function collectFrom(brokers: string, topics: string[]): Promise<CollectingConsumer> {
  const kafka = new Kafka({
    brokers: brokers.split(','),
    clientId: 'test-consumer',
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 100, maxRetryTime: 500, retries: 1_000 },
  });
  const consumer = kafka.consumer({
    groupId: `test-${randomUUID()}`,
    readUncommitted: false,
    maxWaitTimeInMs: 500,
    sessionTimeout: 60_000,
    rebalanceTimeout: 60_000,
  });
  const received: Received[] = [];
  const waiting = new Set<() => void>();
  await consumer.connect();
  await consumer.subscribe({ topics, fromBeginning: true });
  await consumer.run({
    eachMessage: async ({ topic, partition, message }) => {
      const headers = Object.fromEntries(
        Object.entries(message.headers ?? {}).map(([name, value]) => [name, String(value)]),
      );
      received.push({
        topic,
        partition,
        offset: message.offset,
        key: String(message.key),
        value: message.value && String(message.value),
        headers,
        at: performance.now(),
      });
      for (const look of waiting) look();
    },
  });
  return {
    received,
    until: (done) =>
      new Promise((resolve) => {
        const look = (): void => {
          if (!done(received)) return;
          waiting.delete(look);
          resolve(received);
        };
        waiting.add(look);
        look();
      }),
    close: () => consumer.disconnect(),
  };
}
