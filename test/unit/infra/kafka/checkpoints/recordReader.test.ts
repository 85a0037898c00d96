import { afterEach, expect, test } from '@jest/globals';
import type { Kafka } from 'kafkajs';
import {
  createCheckpointRecordReader,
  type CheckpointRecordReader,
} from '../../../../../infra/kafka/checkpoints/recordReader.ts';
import { createRecordKeyCheck } from '../../../../../infra/kafka/checkpoints/recordValues.ts';

const KEY = 'relay.taken-over';

/** A topic whose reader gets each appended list of records in one fetch. */
function createTopic() {
  const listeners = new Map<string, (event: { payload: object }) => void>();
  let append: (records: readonly [key: string, value: string][]) => Promise<void> = async () =>
    undefined;
  let end = 0;
  const consumer = {
    events: { CRASH: 'crash', REQUEST: 'request', END_BATCH_PROCESS: 'end' },
    on: (name: string, listener: (event: { payload: object }) => void) =>
      void listeners.set(name, listener),
    connect: async () => undefined,
    disconnect: async () => undefined,
    subscribe: async () => undefined,
    async run({ eachBatch }: { eachBatch: (payload: object) => Promise<void> }) {
      append = async (records) => {
        const messages = records.map(([key, value], index) => ({
          key: Buffer.from(key),
          value: Buffer.from(value),
          offset: String(end + index),
        }));
        end += messages.length;
        await eachBatch({ batch: { messages } });
        listeners.get('end')!({ payload: { lastOffset: String(end - 1) } });
      };
    },
  };
  const admin = {
    connect: async () => undefined,
    disconnect: async () => undefined,
    deleteGroups: async () => [],
    listTopics: async () => ['checkpoints'],
    fetchTopicOffsets: async () => [{ partition: 0, high: String(end) }],
  };
  const kafka = { admin: () => admin, consumer: () => consumer } as unknown as Kafka;
  reader = createCheckpointRecordReader(kafka, {
    topic: 'checkpoints',
    group: 'relay',
    isOwnKey: createRecordKeyCheck('relay', ['agents']),
  });
  return {
    reader,
    /** Once the reader has started. */
    append: (...values: string[]) => append(values.map((value) => [KEY, value])),
    appendRecords: (records: readonly [key: string, value: string][]) => append(records),
  };
}

let reader: CheckpointRecordReader;
afterEach(() => reader.close());

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

test('a record that is read in one fetch with its successor is not waited for any longer', async () => {
  const topic = createTopic();
  const reading = topic.reader.commitAndRead({ key: KEY, value: 'a' }, async () => undefined);
  await nextTurn();
  await topic.append('earlier', 'a', 'b');
  expect((await reading).get(KEY)).toEqual({ value: 'b', offset: '2' });
});

test('a record whose successor is read before its commit returns is not waited for any longer', async () => {
  const topic = createTopic();
  const first = topic.reader.commitAndRead({ key: KEY, value: 'a' }, async () => undefined);
  await nextTurn();
  await topic.append('a');
  await first;
  const second = topic.reader.commitAndRead({ key: KEY, value: 'b' }, async () => {
    await topic.append('b', 'c');
    await topic.append('d');
  });
  expect((await second).get(KEY)).toEqual({ value: 'd', offset: '3' });
});

test('other values of the key are not taken for the record', async () => {
  const topic = createTopic();
  let isRead = false;
  const reading = topic.reader
    .commitAndRead({ key: KEY, value: 'a' }, async () => undefined)
    .then(() => void (isRead = true));
  await nextTurn();
  await topic.append('earlier');
  await nextTurn();
  expect(isRead).toBe(false);
  await topic.append('a');
  await reading;
});

test('a record that could not be committed is not read', async () => {
  const { reader: unread } = createTopic();
  const failed = async (): Promise<void> => {
    throw new Error('not committed');
  };
  await expect(unread.commitAndRead({ key: KEY, value: 'a' }, failed)).rejects.toThrow(
    'not committed',
  );
});

test('records that were read do not change when later ones come', async () => {
  const topic = createTopic();
  const reading = topic.reader.commitAndRead({ key: KEY, value: 'a' }, async () => undefined);
  await nextTurn();
  await topic.append('a');
  const records = await topic.reader.readAll();
  await topic.append('b');
  expect((await reading).get(KEY)?.value).toBe('a');
  expect(records.get(KEY)?.value).toBe('a');
  expect((await topic.reader.readAll()).get(KEY)?.value).toBe('b');
});

/** A topic whose reader has read one record. */
async function createReadTopic() {
  const topic = createTopic();
  const reading = topic.reader.commitAndRead({ key: KEY, value: 'a' }, async () => undefined);
  await nextTurn();
  await topic.append('a');
  await reading;
  return topic;
}

test('only records of the kinds that a relay writes are held', async () => {
  const topic = await createReadTopic();
  const own = ['relay', 'relay.alive', 'relay.topic.agents', 'relay.parked.agents/agent_1'];
  const other = ['relay2', 'relay.other', 'relay.topic.others', 'relay.parked', 'other'];
  await topic.appendRecords([...own, ...other].map((key) => [key, '']));
  expect([...(await topic.reader.readAll()).keys()]).toEqual([KEY, ...own]);
});

const parked = (count: number, value = ''): [string, string][] =>
  Array.from({ length: count }, (_, index) => [`relay.parked.agents/agent_${index}`, value]);

test.each([
  ['records', parked(1_200)],
  ['characters', parked(5, 'x'.repeat(2 ** 20))],
])('a topic with more %s than a relay writes is refused', async (_, records) => {
  const topic = await createReadTopic();
  const reading = topic.reader.commitAndRead({ key: KEY, value: 'b' }, async () => {
    await topic.appendRecords(records);
    await topic.append('b');
  });
  await expect(reading).rejects.toMatchObject({
    code: 'configuration_invalid',
    message: expect.stringContaining('more than 1100 records or 4 MiB') as unknown,
  });
});

test('records that replace others may come without end', async () => {
  const topic = await createReadTopic();
  for (let round = 0; round < 10; round += 1)
    await topic.appendRecords(parked(3, 'x'.repeat(2 ** 20)));
  expect((await topic.reader.readAll()).size).toBe(4);
});
