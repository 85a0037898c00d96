import type { Kafka, RecordMetadata, Transaction } from 'kafkajs';
import { retry } from '../../shared/lib/time/backoff.ts';
import { kafkaCall } from './errors.ts';
import { isTransactionPending, retryRequest } from './retryRequest.ts';
import type { TopicSend } from './batching.ts';

/**
 * After this time without activity the broker aborts a transaction, which until then blocks readers of
 * committed messages.
 */
const TRANSACTION_TIMEOUT_MS = 30_000;
const BUSY_LIMIT_MS = 20_000;
const BUSY_PAUSES = { firstMs: 2, longestMs: 10 };

export interface TransactionalProducer {
  /**
   * Sends one message and then the rest, in order, in one transaction; `last` is made of where the
   * rest went. Errors: those of asPublisherError; nothing but `close` may follow one.
   */
  commit(
    first: TopicSend,
    rest?: readonly TopicSend[],
    last?: (written: readonly RecordMetadata[]) => TopicSend,
  ): Promise<void>;
  close(): Promise<void>;
}

/**
 * Sends to one partition, a few times where that may help. A send that was taken and not answered
 * is known by its sequence numbers: kafkajs gives them to it again, as long as all of it goes to one
 * partition, and the broker takes it once.
 */
const send = (transaction: Transaction, { topic, messages, description: note }: TopicSend) =>
  kafkaCall(() => retryRequest(() => transaction.send({ topic, messages })), {
    topic,
    message: note,
  });

/** The first send of a transaction waits until the coordinator has finished the previous one. */
async function sendFirst(transaction: Transaction, first: TopicSend): Promise<void> {
  const deadline = performance.now() + BUSY_LIMIT_MS;
  await retry(() => send(transaction, first), {
    pauses: BUSY_PAUSES,
    shouldRetry: (error) => isTransactionPending(error) && performance.now() <= deadline,
  });
}

/**
 * A producer of transactions. Opening it finishes whatever another producer with this transactional
 * id has begun and fences it, at the first commit.
 *
 * kafkajs must not retry a send over several partitions: what one broker has taken already would
 * come again under new sequence numbers. And a producer whose commit has failed can't be used
 * again. So a send is to one partition, and after any other error a new producer asks the
 * checkpoint what has happened. `idempotent` is left out because it only concerns sends outside
 * transactions.
 */
export async function openTransactionalProducer(
  kafka: Kafka,
  transactionalId: string,
): Promise<TransactionalProducer> {
  const producer = kafka.producer({
    transactionalId,
    transactionTimeout: TRANSACTION_TIMEOUT_MS,
    allowAutoTopicCreation: false,
    // Every message says its partition.
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
    retry: { retries: 0 },
  });
  await kafkaCall(() => retryRequest(() => producer.connect()));
  return {
    commit: (first, rest = [], last) =>
      kafkaCall(
        async () => {
          // The first one initialises the producer, which may be repeated.
          const transaction = await retryRequest(() => producer.transaction());
          await sendFirst(transaction, first);
          const written: RecordMetadata[] = [];
          for (const part of rest) written.push(...(await send(transaction, part)));
          if (last) await send(transaction, last(written));
          await transaction.commit();
        },
        { transactionalId },
      ),
    close: () => producer.disconnect(),
  };
}
