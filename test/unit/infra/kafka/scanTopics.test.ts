import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import type { Kafka } from 'kafkajs';
import { scanTopics } from '../../../../infra/kafka/scanTopics.ts';

const TOPIC = 'topic';

interface Batch {
  messages: Array<{ headers: Record<string, Buffer> }>;
  last: number;
}

const message = (id: string): Batch['messages'][number] => ({
  headers: { ce_id: Buffer.from(id) },
});

/** One partition with offsets below `high`, whose broker answers with these batches or nothing. */
function clusterOf(high: string, answers: ReadonlyArray<Batch | 'nothing'>): Kafka {
  const listeners = new Map<string, (event: { payload: object }) => void>();
  const emit = (name: string, payload: object): void => listeners.get(name)?.({ payload });
  const admin = {
    connect: async () => undefined,
    disconnect: async () => undefined,
    fetchTopicOffsets: async () => [{ partition: 0, high, low: '0', offset: high }],
    fetchTopicMetadata: async () => ({
      topics: [{ name: TOPIC, partitions: [{ partitionId: 0, leader: 1 }] }],
    }),
    describeCluster: async () => ({ brokers: [{ nodeId: 1, host: 'broker', port: 9092 }] }),
    deleteGroups: async () => [],
  };
  async function run({ eachBatch }: { eachBatch: (payload: object) => Promise<void> }) {
    void (async () => {
      for (const answer of answers) {
        await sleep(20);
        emit('request', { apiName: 'Fetch', broker: 'broker:9092' });
        if (answer === 'nothing') continue;
        const { messages, last } = answer;
        const lastOffset = (): string => String(last);
        const place = { topic: TOPIC, partition: 0 };
        if (messages.length > 0) await eachBatch({ batch: { ...place, messages, lastOffset } });
        emit('end', { ...place, lastOffset: String(last) });
      }
    })();
  }
  const consumer = {
    events: { CRASH: 'crash', REQUEST: 'request', END_BATCH_PROCESS: 'end' },
    on: (name: string, listener: (event: { payload: object }) => void) =>
      void listeners.set(name, listener),
    connect: async () => undefined,
    disconnect: async () => undefined,
    subscribe: async () => undefined,
    run,
  };
  return { admin: () => admin, consumer: () => consumer } as unknown as Kafka;
}

async function idsIn(kafka: Kafka): Promise<string[]> {
  const ids: string[] = [];
  await scanTopics(kafka, {
    topics: [TOPIC],
    group: 'group',
    visit: ({ headers }) => ids.push(String(headers?.['ce_id'])),
    signal: new AbortController().signal,
  });
  return ids;
}

test('answers of a broker without anything are not the end of a partition', async () => {
  const nothing = Array.from({ length: 20 }, () => 'nothing' as const);
  const first = { messages: [message('a')], last: 1 };
  const second = { messages: [message('b')], last: 3 };
  expect(await idsIn(clusterOf('4', [first, ...nothing, second]))).toEqual(['a', 'b']);
});

test('markers and aborted messages are read past to the end of a partition', async () => {
  const aborted = { messages: [], last: 7 };
  expect(await idsIn(clusterOf('8', [{ messages: [message('a')], last: 1 }, aborted]))).toEqual([
    'a',
  ]);
});
