import type { EachBatchPayload, Kafka } from 'kafkajs';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { withAdmin } from '../client.ts';
import { createConsumerReader, type ConsumerReader } from '../reader.ts';
import { endOffsetOf } from '../topics.ts';

const READ_LIMIT_MS = 30_000;
/** A reader that fetches and hears nothing for so long has a dead connection. */
const SILENCE_MS = 5_000;
const CLOSE_LIMIT_MS = 3_000;
/** An idle reader asks this often; what is written arrives at once. */
const FETCH_WAIT_MS = 1_000;
/**
 * Answers without anything new after which nothing more is committed, though the topic goes on: a
 * transaction is open. The first was asked for too early, the last may still be looked at.
 */
const MAX_EMPTY_FETCHES = 3;

/** What was committed last under a key, and where. */
interface CheckpointRecord {
  value: string;
  offset: string;
}

/** The committed notes of a checkpoint topic by their keys, without those that were deleted. */
export type CheckpointRecords = ReadonlyMap<string, CheckpointRecord>;

interface Reading extends ConsumerReader {
  notes: Map<string, CheckpointRecord>;
  /** The offset that comes next. */
  next: bigint;
  /** Answers since something came. */
  empty: number;
  /** It has joined its group, and was answered once. */
  fetching: boolean;
  crashed: Error | undefined;
}

/** Reads a checkpoint topic from its beginning, and goes on reading. */
export interface CheckpointRecordReader {
  /** All that was committed when it was called, and perhaps more. Errors: those of kafkajs. */
  readAll(): Promise<CheckpointRecords>;
  /** The notes once a committed one has this value. Errors: those of kafkajs. */
  readUntil(key: string, value: string): Promise<CheckpointRecords>;
  close(): Promise<void>;
}

interface CheckpointTopic {
  topic: string;
  /** Keys that begin otherwise are not ours. */
  keys: string;
}

/**
 * A reader that begins when it is first asked, and again after a failure. It stays, because joining
 * a group takes seconds and dozens of requests.
 */
export function createCheckpointRecordReader(
  kafka: Kafka,
  { topic, keys }: CheckpointTopic,
): CheckpointRecordReader {
  let current: Promise<Reading> | undefined;
  const waiting = new Set<() => void>();
  const wake = (): void => waiting.forEach((look) => look());

  async function take(reading: Reading, { batch }: EachBatchPayload): Promise<void> {
    for (const { key, value, offset } of batch.messages) {
      const name = key?.toString() ?? '';
      if (!name.startsWith(keys)) continue;
      if (value === null) reading.notes.delete(name);
      else reading.notes.set(name, { value: value.toString(), offset });
    }
  }

  const end = (reading: Reading): Promise<void> => reading.end();

  async function begin(): Promise<Reading> {
    const reader = createConsumerReader(kafka, keys, FETCH_WAIT_MS);
    const { consumer } = reader;
    const reading: Reading = {
      ...reader,
      fetching: false,
      notes: new Map(),
      next: 0n,
      empty: 0,
      crashed: undefined,
    };
    consumer.on(consumer.events.CRASH, ({ payload }) => {
      reading.crashed = payload.error;
      wake();
    });
    consumer.on(consumer.events.END_BATCH_PROCESS, ({ payload }) => {
      reading.next = BigInt(payload.lastOffset) + 1n;
      reading.empty = 0;
      wake();
    });
    consumer.on(consumer.events.REQUEST, ({ payload }) => {
      if (payload.apiName !== 'Fetch') return;
      reading.fetching = true;
      reading.empty += 1;
      wake();
    });
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: [topic], fromBeginning: true });
      await consumer.run({ autoCommit: false, eachBatch: (batch) => take(reading, batch) });
    } catch (error) {
      await end(reading);
      throw error;
    }
    return reading;
  }

  /**
   * Ends what failed or does not fit any more; the next call begins anew. Nobody waits for a
   * connection that may be dead.
   */
  function drop(): void {
    void current?.then(end, () => undefined);
    current = undefined;
  }

  async function untilRead(reading: Reading, done: () => boolean): Promise<void> {
    const limit = performance.now() + READ_LIMIT_MS;
    while (!done()) {
      if (reading.crashed) throw reading.crashed;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.add(resolve);
      const left = Math.max(0, limit - performance.now());
      const patience = reading.fetching ? Math.min(left, SILENCE_MS) : left;
      const woken = await resolvesWithin(promise, patience).finally(() => waiting.delete(resolve));
      if (!woken && !done())
        throw new Error(`the topic ${topic} could not be read: no answer for ${patience} ms`);
      if (performance.now() >= limit && !done())
        throw new Error(`the topic ${topic} could not be read within ${READ_LIMIT_MS} ms`);
    }
  }

  async function read(work: (reading: Reading) => Promise<void>): Promise<CheckpointRecords> {
    try {
      const reading = await (current ??= begin());
      await work(reading);
      return reading.notes;
    } catch (error) {
      drop();
      throw error;
    }
  }

  return {
    async readAll() {
      const high = await withAdmin(kafka, (admin) => endOffsetOf(admin, topic));
      const reading = await current?.catch(() => undefined);
      // A topic that was made again, or a reader that was left behind.
      if (reading && (reading.crashed || reading.next > high)) drop();
      if (high === 0n) return new Map();
      return read((reader) => {
        reader.empty = 0;
        return untilRead(reader, () => reader.next >= high || reader.empty >= MAX_EMPTY_FETCHES);
      });
    },
    readUntil: (key, value) =>
      read((reader) => untilRead(reader, () => reader.notes.get(key)?.value === value)),
    async close() {
      const closing = current;
      current = undefined;
      if (closing)
        await resolvesWithin(
          closing.then(end, () => undefined),
          CLOSE_LIMIT_MS,
        );
    },
  };
}
