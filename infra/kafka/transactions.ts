import {
  Partitioners,
  type Kafka,
  type Message,
  type TopicMessages,
  type Transaction,
} from 'kafkajs';
import { retry } from '../../shared/backOff.ts';
import { isProtocolError, kafkaCall } from './errors.ts';

/**
 * After this time without a sign of life the broker aborts a transaction, which until then holds up
 * readers of committed messages.
 */
const TRANSACTION_TIMEOUT_MS = 30_000;
const BUSY_LIMIT_MS = 20_000;
const BUSY_PAUSES = { firstMs: 2, longestMs: 10 };

interface Single {
  topic: string;
  message: Message;
}

export interface TransactionalProducer {
  /**
   * Sends one message and then the rest, in order, in one transaction. Errors: those of
   * asPublisherError; nothing but `close` may follow one.
   */
  commit(first: Single, sends: readonly TopicMessages[][]): Promise<void>;
  close(): Promise<void>;
}

/**
 * The first send of a transaction waits until the coordinator has finished the previous one. Only
 * this message is ever sent twice: it goes to one partition and so is refused as a whole, where the
 * parts of a larger send may fare differently.
 */
async function sendFirst(transaction: Transaction, { topic, message }: Single): Promise<void> {
  const deadline = performance.now() + BUSY_LIMIT_MS;
  await retry(() => transaction.send({ topic, messages: [message] }), {
    pauses: BUSY_PAUSES,
    again: (error) =>
      isProtocolError(error, 'CONCURRENT_TRANSACTIONS') && performance.now() <= deadline,
  });
}

/**
 * A producer of transactions. Opening it finishes whatever another producer with this transactional
 * id has begun and fences it, at the first commit.
 *
 * kafkajs must not retry here: its retry of a send over several brokers may send twice what one of
 * them has already taken, under new sequence numbers, and a producer whose commit has failed can't
 * be used again. After any error a new producer asks the checkpoint what has happened. `idempotent`
 * is left out because it only concerns sends outside transactions.
 */
export async function openTransactionalProducer(
  kafka: Kafka,
  transactionalId: string,
): Promise<TransactionalProducer> {
  const producer = kafka.producer({
    transactionalId,
    transactionTimeout: TRANSACTION_TIMEOUT_MS,
    allowAutoTopicCreation: false,
    createPartitioner: Partitioners.DefaultPartitioner,
    retry: { retries: 0 },
  });
  await kafkaCall(() => producer.connect());
  return {
    commit: (first, sends) =>
      kafkaCall(async () => {
        const transaction = await producer.transaction();
        await sendFirst(transaction, first);
        for (const topicMessages of sends) await transaction.sendBatch({ topicMessages });
        await transaction.commit();
      }),
    close: () => producer.disconnect(),
  };
}
