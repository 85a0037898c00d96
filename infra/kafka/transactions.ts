import type { Kafka, RecordMetadata, Transaction } from 'kafkajs';
import { retry } from '../../shared/lib/time/backoff.ts';
import { resolvesWithin } from '../../shared/lib/time/resolvesWithin.ts';
import { DeadlineExceeded } from '../../shared/lib/time/withDeadline.ts';
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
/** No transaction that takes longer can still be committed, even if the first request took long. */
const COMMIT_LIMIT_MS = BUSY_LIMIT_MS + 2 * TRANSACTION_TIMEOUT_MS;

export interface TransactionalProducer {
  /**
   * Sends `first` and then `rest`, in order, in one transaction, and at the end the message that
   * `last` makes of the offsets of the rest. Throws the errors of toPublisherError; after an error
   * only `close` may be called.
   */
  commit(
    first: TopicSend,
    rest?: readonly TopicSend[],
    last?: (written: readonly RecordMetadata[]) => TopicSend,
  ): Promise<void>;
  close(): Promise<void>;
}

/**
 * Sends to one partition, and retries where that may help. The broker recognizes a repeated send by
 * its sequence numbers and stores it once: kafkajs reuses the numbers as long as the whole send
 * goes to one partition.
 */
const send = (transaction: Transaction, { topic, messages, description }: TopicSend) =>
  kafkaCall(() => retryRequest(() => transaction.send({ topic, messages })), {
    topic,
    message: description,
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
 * Opens a transactional producer. Its first commit finishes the transactions of earlier producers
 * with this transactional id and fences them.
 *
 * kafkajs must not retry a send over several partitions: messages that one broker has stored would
 * be sent again with new sequence numbers. A producer whose commit has failed can't be reused.
 * Therefore each send goes to one partition, and after any other error a new producer reads the
 * checkpoint to find out what was committed. `idempotent` is omitted because it only concerns sends
 * outside transactions.
 */
export async function openTransactionalProducer(
  kafka: Kafka,
  transactionalId: string,
): Promise<TransactionalProducer> {
  const producer = kafka.producer({
    transactionalId,
    transactionTimeout: TRANSACTION_TIMEOUT_MS,
    allowAutoTopicCreation: false,
    // Every message names its partition.
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
    retry: { retries: 0 },
  });
  await kafkaCall(() => retryRequest(() => producer.connect()));
  const closed = new AbortController();
  /** An abandoned commit must not continue on new connections: it would fence its successor. */
  const whileOpen = <Result>(request: () => Promise<Result>): Promise<Result> => {
    closed.signal.throwIfAborted();
    return request();
  };

  async function transact(
    ...[first, rest = [], last]: Parameters<TransactionalProducer['commit']>
  ): Promise<void> {
    // The first call initializes the producer, which may be repeated.
    const transaction = await retryRequest(() => whileOpen(() => producer.transaction()));
    await sendFirst(transaction, first);
    const written: RecordMetadata[] = [];
    for (const topicSend of rest) written.push(...(await send(transaction, topicSend)));
    if (last) await send(transaction, last(written));
    await whileOpen(() => transaction.commit());
  }

  return {
    commit: (...sends) =>
      kafkaCall(
        async () => {
          // Each request has a time limit, but a broker that throttles every one could keep the relay
          // here. A commit that succeeds later is known from the checkpoint.
          if (!(await resolvesWithin(transact(...sends), COMMIT_LIMIT_MS)))
            throw new DeadlineExceeded(COMMIT_LIMIT_MS);
        },
        { transactionalId },
      ),
    close() {
      closed.abort(new Error('The producer is closed.'));
      return producer.disconnect();
    },
  };
}
