import type { Static, TSchema } from 'typebox';
import { Type } from '../../../shared/domain/jsonSchema.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type { ParkedKey } from '../../../shared/publicEvents/publisher.ts';
import { lazyValidator } from '../../../shared/lib/validation/validation.ts';
import type { CheckpointRecords } from './recordReader.ts';

/**
 * The keys of the records in the checkpoint topic. The checkpoint's key is the transactional id.
 */
export const checkpointRecordKeys = (transactionalId: string) => ({
  checkpoint: transactionalId,
  takenOver: `${transactionalId}.taken-over`,
  alive: `${transactionalId}.alive`,
  topic: (name: string): string => `${transactionalId}.topic.${name}`,
  /** The prefix of the keys of parked keys, before topic and key. */
  parked: `${transactionalId}.parked.`,
});

/** Returns a function that recognizes the keys of the records of a relay to these topics. */
export function createRecordKeyCheck(
  transactionalId: string,
  topics: readonly string[],
): (key: string) => boolean {
  const { checkpoint, takenOver, alive, topic, parked } = checkpointRecordKeys(transactionalId);
  const keys = new Set([checkpoint, takenOver, alive, ...topics.map(topic)]);
  return (key) => keys.has(key) || key.startsWith(parked);
}

type RecordValueReader<Value> = (notes: CheckpointRecords, key: string) => Value | undefined;

/**
 * Creates a reader for the values of one kind of record; undefined without a record. Throws
 * `configuration_invalid` for an invalid value, which another application must have written.
 */
function recordValueReader(schema: TSchema): RecordValueReader<unknown> {
  const validator = lazyValidator(schema);
  return (notes, key) => {
    const record = notes.get(key);
    if (!record) return undefined;
    try {
      const value: unknown = JSON.parse(record.value);
      if (validator()(value)) return value;
    } catch {
      // Reported below.
    }
    throw new TurnlogError(
      'configuration_invalid',
      `The checkpoint topic holds something under the key ${key}, at the offset ${record.offset}, that no relay writes. A checkpoint topic is for one relay alone: write there what was there before, or set KAFKA_CHECKPOINT_TOPIC to a new name and KAFKA_START_AFTER to the position after the last event that was published (\`ce_position\`).`,
    );
  };
}

export const readCheckpointRecord = recordValueReader(
  Type.Object({
    log_id: Type.String(),
    position: Type.String(),
    event_id: Type.String(),
    event_hash: Type.String(),
  }),
) as RecordValueReader<Checkpoint>;

const OffsetsSchema = Type.Array(
  Type.Union([Type.Null(), Type.String({ pattern: '^\\d{1,19}$' })]),
  { minItems: 1 },
);
/** For each partition of a topic, the offset of a committed message of ours. */
export type Offsets = Static<typeof OffsetsSchema>;
export const readOffsetsRecord = recordValueReader(OffsetsSchema) as RecordValueReader<Offsets>;

export const readParkedKeyRecord = recordValueReader(
  Type.Object({
    topic: Type.String(),
    key: Type.String(),
    event_id: Type.String(),
    position: Type.String(),
    size: Type.Integer(),
  }),
) as RecordValueReader<ParkedKey>;
