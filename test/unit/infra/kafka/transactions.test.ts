import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import kafkajs, { type Kafka } from 'kafkajs';
import { openTransactionalProducer } from '../../../../infra/kafka/transactions.ts';
import { skipPauses } from '../../../support/fakes/jumpingClock.ts';

skipPauses();

const { KafkaJSConnectionError } = kafkajs;

const SEND = { topic: 'topic', messages: [], description: 'the checkpoint' };

/** A transactional producer on what kafkajs would create. */
const producerOn = (producer: object) =>
  openTransactionalProducer(
    {
      producer: () => ({
        connect: async () => undefined,
        disconnect: async () => undefined,
        ...producer,
      }),
    } as unknown as Kafka,
    'relay',
  );
const producerThat = (send: () => Promise<object[]>) =>
  producerOn({ transaction: async () => ({ send, commit: async () => undefined }) });

test('a commit that gets no answer fails as one whose outcome is unknown', async () => {
  const producer = await producerThat(() => new Promise(() => undefined));
  const began = performance.now();
  await expect(producer.commit(SEND)).rejects.toMatchObject({
    code: 'publisher_unavailable',
    retriable: true,
    message: 'Kafka failed: no answer within 80000 ms',
  });
  expect(performance.now() - began).toBeGreaterThanOrEqual(80_000);
});

test('a commit that fails after its time limit is no unhandled error', async () => {
  let fail: (error: Error) => void = () => undefined;
  const producer = await producerThat(() => new Promise((_, reject) => void (fail = reject)));
  await expect(producer.commit(SEND)).rejects.toMatchObject({ code: 'publisher_unavailable' });
  fail(new Error('late'));
  await new Promise<void>((resolve) => void setImmediate(resolve));
});

test('a commit that was given up does not take over again after its producer is closed', async () => {
  const calls: Array<(error: Error) => void> = [];
  const producer = await producerOn({
    transaction: () => new Promise((_, reject) => void calls.push(reject)),
  });
  await expect(producer.commit(SEND)).rejects.toMatchObject({ code: 'publisher_unavailable' });
  await producer.close();
  calls[0]?.(new KafkaJSConnectionError('lost'));
  await sleep(1_000);
  expect(calls).toHaveLength(1);
});

test('a commit that was given up is not ended after its producer is closed', async () => {
  let answer: (written: object[]) => void = () => undefined;
  let commits = 0;
  const producer = await producerOn({
    transaction: async () => ({
      send: () => new Promise<object[]>((resolve) => void (answer = resolve)),
      commit: async () => void (commits += 1),
    }),
  });
  await expect(producer.commit(SEND)).rejects.toMatchObject({ code: 'publisher_unavailable' });
  await producer.close();
  answer([]);
  await new Promise<void>((resolve) => void setImmediate(resolve));
  expect(commits).toBe(0);
});
