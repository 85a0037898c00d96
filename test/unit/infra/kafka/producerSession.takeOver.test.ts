import { expect, test } from '@jest/globals';
import type { Kafka } from 'kafkajs';
import type { TopicSend } from '../../../../infra/kafka/batching.ts';
import { startProducerSession } from '../../../../infra/kafka/producerSession.ts';
import { toPublicEvents } from '../../../../shared/publicEvents/toPublicEvents.ts';
import { agentCreated } from '../../../support/builders/events.ts';
import { reached, recordHistory } from '../../../support/builders/history.ts';
import { publisherOptions } from '../../../support/servers/kafka/relay.ts';

const options = { ...publisherOptions('127.0.0.1:9', 'p'), deadLetterTopic: undefined };
const { agents, sessions } = options.topics;
const NOTED_OFFSETS = `${options.transactionalId}.topic.${agents}`;

/** The topics, where that of agents has partitions that end at these offsets. */
const topicsUpTo = (ends: bigint[]) =>
  new Map(
    [agents, sessions].map((name) => [
      name,
      {
        ends: name === agents ? ends : [0n],
        maxMessageBytes: 1_000_000,
        retentionMs: -1,
        retentionBytes: -1,
        cleanupPolicy: 'delete',
      },
    ]),
  );

interface TakeOver {
  /** The token that the checkpoint topic then holds. */
  latest?: (own: string) => string;
  /** The offsets that the predecessor noted for the topic of agents. */
  noted?: string;
  /** The ends of that topic: as described before the take-over, and afterwards. */
  ends?: { before: bigint[]; after: bigint[] };
}

async function takeOver({
  latest = (own) => own,
  noted = '[null]',
  ends = { before: [0n], after: [0n] },
}: TakeOver) {
  const commits: TopicSend[][] = [];
  const session = await startProducerSession({
    kafka: {} as Kafka,
    options,
    producer: {
      async commit(first, rest = [], last) {
        const written = rest.map(({ topic, messages: [message] }) => ({
          topicName: topic,
          partition: message!.partition!,
          baseOffset: '9',
          errorCode: 0,
        }));
        commits.push([first, ...rest, ...(last ? [last(written)] : [])]);
      },
      close: async () => undefined,
    },
    notes: {
      readAll: async () => new Map(),
      async commitAndRead({ key, value }, commit) {
        await commit();
        return new Map([
          [key, { value: latest(value), offset: '1' }],
          [NOTED_OFFSETS, { value: noted, offset: '0' }],
        ]);
      },
      close: async () => undefined,
    },
    topics: topicsUpTo(ends.before),
    refreshTopics: async () => topicsUpTo(ends.after),
    requireTopics: async () => undefined,
  });
  return { session, commits };
}

test('a relay after whose token there is another one is fenced', async () => {
  const { session } = await takeOver({});
  expect(session.checkpoint).toBeUndefined();
  await expect(takeOver({ latest: () => 'the token of another relay' })).rejects.toMatchObject({
    code: 'publisher_fenced',
  });
});

test('offsets remain noted that the predecessor wrote after the topics had been described', async () => {
  const { session, commits } = await takeOver({
    noted: '["6","2"]',
    ends: { before: [6n, 3n], after: [7n, 3n] },
  });
  const { record, lastPosition } = recordHistory();
  const events = toPublicEvents([record({ stream: 'agent-agent_1' }, agentCreated())]);
  await session.publish(events, reached(lastPosition()).checkpoint!);
  const notes = commits.at(-1)!.at(-1)!.messages;
  expect(notes.find(({ key }) => key === NOTED_OFFSETS)?.value).toBe('["9","2"]');
});
