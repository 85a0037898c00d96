import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import type { EachMessagePayload, Kafka } from 'kafkajs';
import { TurnlogError } from '../../shared/errors.ts';
import type { Checkpoint } from '../../shared/ports/publisher.ts';
import { settlesWithin } from '../../shared/settlesWithin.ts';
import { lazyValidator } from '../../shared/validation.ts';
import { withAdmin } from './client.ts';

const READ_LIMIT_MS = 30_000;
const FETCH_WAIT_MS = 100;

const validator = lazyValidator(Type.Object({ position: Type.String(), log_id: Type.String() }));

function parseCheckpoint(text: string): Checkpoint {
  const value: unknown = JSON.parse(text);
  if (!validator()(value))
    throw new TurnlogError(
      'publisher_unavailable',
      'The checkpoint topic holds something that is not a checkpoint.',
    );
  return value as Checkpoint;
}

interface CheckpointRead {
  topic: string;
  /** The key of the checkpoint. */
  key: string;
  /** A committed message of the topic, up to which it is read. */
  until: { key: string; value: string };
}

/**
 * The checkpoint that was committed last before a message that the caller has just committed.
 * kafkajs can read only as a member of a group, so a group of this name prefix is made for it and
 * deleted: `<key>.reader.`.
 */
export async function readCheckpoint(
  kafka: Kafka,
  { topic, key, until }: CheckpointRead,
): Promise<Checkpoint | undefined> {
  const groupId = `${key}.reader.${randomUUID()}`;
  const consumer = kafka.consumer({
    groupId,
    maxWaitTimeInMs: FETCH_WAIT_MS,
    allowAutoTopicCreation: false,
  });
  let found: string | undefined;
  let complete = false;
  const { promise: reached, resolve, reject } = Promise.withResolvers<void>();

  async function eachMessage({ message }: EachMessagePayload): Promise<void> {
    const value = message.value?.toString();
    if (message.key?.toString() === until.key && value === until.value) {
      complete = true;
      resolve();
    }
    if (message.key?.toString() === key && !complete) found = value;
  }

  try {
    await consumer.connect();
    await consumer.subscribe({ topics: [topic], fromBeginning: true });
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error));
    consumer.run({ autoCommit: false, eachMessage }).catch(reject);
    if (!(await settlesWithin(reached, READ_LIMIT_MS)))
      throw new Error(`the topic ${topic} could not be read within ${READ_LIMIT_MS} ms`);
  } finally {
    await consumer.disconnect();
  }
  await withAdmin(kafka, (admin) => admin.deleteGroups([groupId])).catch(() => undefined);
  return found === undefined ? undefined : parseCheckpoint(found);
}
