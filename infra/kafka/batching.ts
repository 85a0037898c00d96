import { Partitioners, type Message } from 'kafkajs';

/** Below the 1 MiB that a broker accepts in one batch by default. */
const MAX_SEND_BYTES = 768 * 1024;
/** The overhead of a batch, without its records. */
const BATCH_BYTES = 61;
/** The most that a record's position in its batch adds to its size. */
const RECORD_POSITION_BYTES = 8;

/** A message of Turnlog, with text only. A message without a value is a tombstone. */
export type TextMessage = Message & {
  key: string;
  value: string | null;
  headers?: Record<string, string>;
};

/** Messages of one partition, in order: one batch, which a broker accepts or rejects as a whole. */
export interface TopicSend {
  topic: string;
  messages: TextMessage[];
  /** For errors. */
  description: string;
}

/** The encoded size of a number in a record, in bytes. */
const varint = (value: number): number => {
  let bytes = 1;
  // The sign takes one bit more.
  for (
    let remaining = value < 0 ? -2 * value - 1 : value * 2;
    remaining >= 128;
    remaining = Math.floor(remaining / 128)
  )
    bytes += 1;
  return bytes;
};
const fieldBytes = (value: string | null): number => {
  if (value === null) return varint(-1);
  const bytes = Buffer.byteLength(value);
  return varint(bytes) + bytes;
};

function recordBytes({ key, value, headers = {} }: TextMessage): number {
  const entries = Object.entries(headers);
  const body =
    // Attributes, and the first position in the batch.
    3 +
    fieldBytes(key) +
    fieldBytes(value) +
    varint(entries.length) +
    entries.reduce((sum, [name, content]) => sum + fieldBytes(name) + fieldBytes(content), 0);
  return varint(body) + body;
}

/** The size of a message sent alone, in bytes, which `max.message.bytes` limits. */
export const messageBytes = (message: TextMessage): number => BATCH_BYTES + recordBytes(message);

/** Chooses the partition of a key, as the Java client does. */
export function createPartitioner(partitions: number): (key: string) => number {
  const choose = Partitioners.DefaultPartitioner();
  const partitionMetadata = Array.from({ length: partitions }, (_, partitionId) => ({
    partitionErrorCode: 0,
    partitionId,
    leader: 0,
    replicas: [],
    isr: [],
  }));
  return (key) => choose({ topic: '', partitionMetadata, message: { key, value: null } });
}

const describeEvent = ({ key, value, headers }: TextMessage): string =>
  value === null ? `the tombstone of ${key}` : `event ${headers?.['ce_id']}`;

/**
 * Groups the messages of a topic, each with its partition, into sends that a broker accepts, in order
 * within each partition.
 */
export function groupIntoSends(
  topic: string,
  messages: readonly TextMessage[],
  maxBytes: number,
): TopicSend[] {
  const limit = Math.min(MAX_SEND_BYTES, maxBytes);
  const sends: TopicSend[] = [];
  const openSends = new Map<number | undefined, { send: TopicSend; bytes: number }>();
  for (const message of messages) {
    const bytes = recordBytes(message) + RECORD_POSITION_BYTES;
    const openSend = openSends.get(message.partition);
    if (openSend && openSend.bytes + bytes <= limit) {
      openSend.send.messages.push(message);
      openSend.bytes += bytes;
      continue;
    }
    const send = {
      topic,
      messages: [message],
      description: `${describeEvent(message)}, ${messageBytes(message)} bytes`,
    };
    sends.push(send);
    openSends.set(message.partition, { send, bytes: BATCH_BYTES + bytes });
  }
  return sends;
}
