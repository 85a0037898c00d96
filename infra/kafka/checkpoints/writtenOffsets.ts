import type { RecordMetadata } from 'kafkajs';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { CheckpointRecords } from './recordReader.ts';
import { readOffsetsRecord, type Offsets } from './recordValues.ts';
import type { TextMessage } from '../batching.ts';
import type { Topic } from '../topics.ts';

const isBehind = (offsets: Offsets, { ends }: Topic): boolean =>
  offsets.some((offset, partition) => offset !== null && BigInt(offset) >= (ends[partition] ?? 0n));

/** A sentence about a topic that lacks messages written to it; undefined when none are missing. */
export function describeLostMessages(
  notes: CheckpointRecords,
  key: string,
  { name, topic }: { name: string; topic: Topic | undefined },
): string | undefined {
  const offsets = readOffsetsRecord(notes, key);
  if (!offsets) return undefined;
  if (!topic) return `The topic ${name}, to which events were published, is gone.`;
  if (!isBehind(offsets, topic)) return undefined;
  return `The topic ${name} lacks events that were published to it: it was deleted and made again, or has lost its end.`;
}

/**
 * Tracks the offsets of a publisher's messages in a topic. A topic that gets more partitions later
 * is used with the original number, because a key would otherwise move to another partition.
 */
export function createWrittenOffsets(
  notes: CheckpointRecords,
  key: string,
  { name, topic }: { name: string; topic: Topic },
) {
  const storedOffsets = readOffsetsRecord(notes, key);
  const isWhole = storedOffsets !== undefined && !isBehind(storedOffsets, topic);
  const unknownOffsets = topic.ends.slice(0, storedOffsets?.length).map(() => null);
  let offsets: Offsets = isWhole ? storedOffsets : unknownOffsets;

  return {
    partitions: offsets.length,
    /**
     * Returns the record of the offsets written now, if any, and a function that stores them.
     * Throws `publisher_unavailable` if the topic was recreated meanwhile.
     */
    note(
      written: readonly RecordMetadata[],
    ): { message: TextMessage; committed: () => void } | undefined {
      const next = [...offsets];
      let changed = false;
      for (const { topicName, partition, baseOffset } of written) {
        if (topicName !== name || baseOffset === undefined || BigInt(baseOffset) < 0n) continue;
        const previousOffset = next[partition];
        if (typeof previousOffset === 'string' && BigInt(baseOffset) <= BigInt(previousOffset))
          throw new TurnlogError(
            'publisher_unavailable',
            `The topic ${name} was deleted and made again.`,
            { retriable: true },
          );
        next[partition] = baseOffset;
        changed = true;
      }
      if (!changed) return undefined;
      return {
        message: { key, value: JSON.stringify(next) },
        committed: () => void (offsets = next),
      };
    },
  };
}
