import type { EachBatchPayload, Kafka } from 'kafkajs';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { MIB } from '../../../shared/lib/units.ts';
import { withAdmin } from '../client.ts';
import { createConsumerReader, type ConsumerReader } from '../reader.ts';
import { endOffsetOf } from '../topics.ts';

const READ_LIMIT_MS = 30_000;
/** A reader that is fetching and gets no response for this long has a dead connection. */
const SILENCE_MS = 5_000;
const CLOSE_LIMIT_MS = 3_000;
/** The interval of an idle reader's fetches. New records still arrive at once. */
const FETCH_WAIT_MS = 1_000;
/**
 * After this many empty responses the reader has read all committed records, although the topic has
 * a higher end offset: a transaction is open. The first response may belong to a fetch sent too
 * early, and the last one may still be in processing.
 */
const MAX_EMPTY_FETCHES = 3;
/**
 * The most records held, and their size in characters: those of 1,000 parked keys (deadLetters.ts) and of
 * topics with thousands of partitions fit. More come from another writer, or from a broker that makes
 * them up.
 */
const MAX_RECORDS = 1_100;
const MAX_CHARS = 4 * MIB;

/** The last committed record of a key, and its offset. */
interface CheckpointRecord {
  value: string;
  offset: string;
}

/** The committed records of a checkpoint topic by key, without deleted ones. */
export type CheckpointRecords = ReadonlyMap<string, CheckpointRecord>;

interface Reading extends ConsumerReader {
  notes: Map<string, CheckpointRecord>;
  /** The size of the notes in characters. */
  chars: number;
  /** The next offset to read. */
  next: bigint;
  /** The number of responses since the last record. */
  empty: number;
  /** True once it has joined its group and received a response. */
  fetching: boolean;
  crashed: Error | undefined;
}

/** Reads a checkpoint topic from its beginning, and continues with new records. */
export interface CheckpointRecordReader {
  /**
   * Resolves with all records committed before the call, and possibly later ones. Rejects with
   * kafkajs errors.
   */
  readAll(): Promise<CheckpointRecords>;
  /**
   * Commits a record by `commit`, and resolves with the records once they include it or a later one of
   * its key. Rejects with kafkajs errors and the errors of `commit`.
   */
  commitAndRead(record: CommittedRecord, commit: () => Promise<void>): Promise<CheckpointRecords>;
  close(): Promise<void>;
}

interface CommittedRecord {
  key: string;
  /** Unique among the records of the key. */
  value: string;
}

interface CheckpointTopic {
  topic: string;
  /** The prefix of the reader's consumer group. */
  group: string;
  /** Records with other keys are ignored. */
  isOwnKey: (key: string) => boolean;
}

/** Holds the record of a key in place of the previous one, or deletes it. */
function note(reading: Reading, key: string, record: CheckpointRecord | undefined): void {
  const sizeOf = (value: string | undefined): number =>
    value === undefined ? 0 : key.length + value.length;
  reading.chars += sizeOf(record?.value) - sizeOf(reading.notes.get(key)?.value);
  if (record) reading.notes.set(key, record);
  else reading.notes.delete(key);
}

/** The error of a topic that holds more than any relay writes. */
const overfullError = (topic: string): TurnlogError =>
  new TurnlogError(
    'configuration_invalid',
    `The checkpoint topic ${topic} holds more than ${MAX_RECORDS} records or ${MAX_CHARS / MIB} MiB under the keys of this relay, which no relay writes. A checkpoint topic is for one relay alone: let no other program write to it, and set KAFKA_CHECKPOINT_TOPIC to a new name and KAFKA_START_AFTER to the position after the last event that was published (\`ce_position\`).`,
  );

/**
 * Creates a reader that starts with the first call, and again after a failure. It stays connected,
 * because joining a group takes seconds and dozens of requests.
 */
export function createCheckpointRecordReader(
  kafka: Kafka,
  { topic, group, isOwnKey }: CheckpointTopic,
): CheckpointRecordReader {
  let current: Promise<Reading> | undefined;
  const waiters = new Set<() => void>();
  /** The records that callers wait for. One fetch may return a record and its successor. */
  const awaitedRecords = new Set<CommittedRecord & { isRead: boolean }>();
  const wake = (): void => waiters.forEach((wakeWaiter) => wakeWaiter());

  async function addRecords(reading: Reading, { batch }: EachBatchPayload): Promise<void> {
    for (const { key, value, offset } of batch.messages) {
      const name = key?.toString() ?? '';
      if (reading.crashed || !isOwnKey(name)) continue;
      note(reading, name, value === null ? undefined : { value: value.toString(), offset });
      if (reading.notes.size > MAX_RECORDS || reading.chars > MAX_CHARS)
        reading.crashed = overfullError(topic);
      for (const awaited of awaitedRecords)
        awaited.isRead ||= awaited.key === name && awaited.value === value?.toString();
    }
  }

  const end = (reading: Reading): Promise<void> => reading.end();

  async function start(): Promise<Reading> {
    const reader = createConsumerReader(kafka, group, FETCH_WAIT_MS);
    const { consumer } = reader;
    const reading: Reading = {
      ...reader,
      fetching: false,
      notes: new Map(),
      chars: 0,
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
      await consumer.run({ autoCommit: false, eachBatch: (batch) => addRecords(reading, batch) });
    } catch (error) {
      await end(reading);
      throw error;
    }
    return reading;
  }

  /**
   * Discards the reader, so that the next call starts another one. Does not wait, because its
   * connection may be dead.
   */
  function drop(): void {
    void current?.then(end, () => undefined);
    current = undefined;
  }

  async function waitUntilRead(reading: Reading, done: () => boolean): Promise<void> {
    const limit = performance.now() + READ_LIMIT_MS;
    for (;;) {
      // First: the records may be incomplete.
      if (reading.crashed) throw reading.crashed;
      if (done()) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiters.add(resolve);
      const remainingMs = Math.max(0, limit - performance.now());
      const timeoutMs = reading.fetching ? Math.min(remainingMs, SILENCE_MS) : remainingMs;
      const woken = await resolvesWithin(promise, timeoutMs).finally(() => waiters.delete(resolve));
      if (!woken && !done())
        throw new Error(`the topic ${topic} could not be read: no answer for ${timeoutMs} ms`);
      if (performance.now() >= limit && !done())
        throw new Error(`the topic ${topic} could not be read within ${READ_LIMIT_MS} ms`);
    }
  }

  async function read(work: (reading: Reading) => Promise<void>): Promise<CheckpointRecords> {
    try {
      const reading = await (current ??= start());
      await work(reading);
      // A copy: the reader continues.
      return new Map(reading.notes);
    } catch (error) {
      drop();
      throw error;
    }
  }

  return {
    async readAll() {
      const endOffset = await withAdmin(kafka, (admin) => endOffsetOf(admin, topic));
      const reading = await current?.catch(() => undefined);
      // The topic was recreated, or the reader has crashed.
      if (reading && (reading.crashed || reading.next > endOffset)) drop();
      if (endOffset === 0n) return new Map();
      return read((reader) => {
        reader.empty = 0;
        return waitUntilRead(
          reader,
          () => reader.next >= endOffset || reader.empty >= MAX_EMPTY_FETCHES,
        );
      });
    },
    async commitAndRead({ key, value }, commit) {
      const awaited = { key, value, isRead: false };
      awaitedRecords.add(awaited);
      try {
        await commit();
        return await read((reader) => waitUntilRead(reader, () => awaited.isRead));
      } finally {
        awaitedRecords.delete(awaited);
      }
    },
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
