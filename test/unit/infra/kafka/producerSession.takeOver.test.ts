import { expect, test } from '@jest/globals';
import type { Kafka } from 'kafkajs';
import { startProducerSession } from '../../../../infra/kafka/producerSession.ts';
import { publisherOptions } from '../../../support/servers/kafka/relay.ts';

/** Takes over; `latest` is the token that the checkpoint topic then holds. */
const takeOver = (latest: (own: string) => string) =>
  startProducerSession({
    kafka: {} as Kafka,
    options: {
      ...publisherOptions('127.0.0.1:9', 'p'),
      deadLetterTopic: undefined,
      topics: {} as never,
    },
    producer: { commit: async () => undefined, close: async () => undefined },
    notes: {
      readAll: async () => new Map(),
      async commitAndRead({ key, value }, commit) {
        await commit();
        return new Map([[key, { value: latest(value), offset: '1' }]]);
      },
      close: async () => undefined,
    },
    topics: new Map(),
    requireTopics: async () => undefined,
  });

test('a relay after whose token there is another one is fenced', async () => {
  expect(await takeOver((own) => own)).toMatchObject({ checkpoint: undefined });
  await expect(takeOver(() => 'the token of another relay')).rejects.toMatchObject({
    code: 'publisher_fenced',
  });
});
