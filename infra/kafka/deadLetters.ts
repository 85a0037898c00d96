import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { ParkedKey, ParkedKeys } from '../../shared/publicEvents/publisher.ts';
import { reportsErasure } from '../../shared/publicEvents/erasedTexts.ts';
import type { PublicEvent } from '../../shared/publicEvents/publicEvent.ts';
import type { CheckpointRecords } from './checkpoints/recordReader.ts';
import { readParkedKeyRecord } from './checkpoints/recordValues.ts';
import { messageBytes, type TextMessage } from './batching.ts';

/** Parked keys are read at a take-over and kept in memory. */
const MAX_PARKED = 1_000;
const SHOWN = 5;

/** An event with its message and topic. */
interface AddressedEvent {
  event: PublicEvent;
  topic: string;
  message: TextMessage;
}

/** The messages of a publication by their destination. */
interface SortedMessages {
  sendable: AddressedEvent[];
  /** For the dead-letter topic. */
  dead: TextMessage[];
  /** Checkpoint records of the newly parked keys. */
  notes: TextMessage[];
  /** Call it once the publication is committed. */
  committed: () => void;
}

const nameOf = ({ topic, key }: Pick<ParkedKey, 'topic' | 'key'>): string => `${topic}/${key}`;

function deadLetter({ event, topic }: AddressedEvent, size: number, reason: string): TextMessage {
  const { id, type, channel, key, revision, position } = event;
  const stream = `${channel.slice(0, -1)}-${key}`;
  const value = { reason, topic, event_id: id, type, stream, revision, position, size };
  return { key, value: JSON.stringify(value) };
}

/** The id of the event that a dead letter names; undefined for foreign messages. */
export function deadLetterEventId(value: Buffer | null): string | undefined {
  try {
    const { event_id } = JSON.parse(value?.toString() ?? '{}') as { event_id?: unknown };
    return typeof event_id === 'string' ? event_id : undefined;
  } catch {
    return undefined;
  }
}

/** Throws `configuration_invalid` without a dead-letter topic, or when too many keys are parked. */
function requireParkable(
  parks: boolean,
  count: number,
  { topic, event_id, size }: ParkedKey,
): void {
  const problem = `The message of the event ${event_id} has ${size} bytes, more than max.message.bytes of the topic ${topic} allows`;
  if (!parks) throw new TurnlogError('configuration_invalid', `${problem}. Raise it and go on.`);
  if (count >= MAX_PARKED)
    throw new TurnlogError(
      'configuration_invalid',
      `${problem}, and ${MAX_PARKED} keys are parked already. Raise max.message.bytes and restart the relay.`,
    );
}

/**
 * Parks keys with an event larger than its topic allows. None of their later events is published,
 * because consumers would see a history with a gap.
 */
export function createDeadLetterQueue(notes: CheckpointRecords, prefix: string, parks: boolean) {
  const parked = new Map<string, ParkedKey>();
  for (const key of notes.keys()) {
    const parkedKey = key.startsWith(prefix) ? readParkedKeyRecord(notes, key) : undefined;
    if (parkedKey) parked.set(key.slice(prefix.length), parkedKey);
  }

  return {
    /**
     * Separates messages that their topics accept from dead letters. Throws `configuration_invalid` when
     * no further key can be parked.
     */
    sort(
      messages: readonly AddressedEvent[],
      maxBytesOf: (topic: string) => number,
    ): SortedMessages {
      const added = new Map<string, ParkedKey>();
      const sendable: AddressedEvent[] = [];
      const dead: TextMessage[] = [];
      for (const addressed of messages) {
        const { event, topic, message } = addressed;
        const key = { topic, key: event.key, event_id: event.id, position: event.position };
        const name = nameOf(key);
        const size = messageBytes(message);
        const first = parked.get(name) ?? added.get(name);
        // An erasure leaves no gap, and consumers must delete what was published before.
        if (first && !reportsErasure(event)) {
          dead.push(
            deadLetter(addressed, size, `the event ${first.event_id} of its key is parked`),
          );
        } else if (size > maxBytesOf(topic)) {
          requireParkable(parks, parked.size + added.size, { ...key, size });
          added.set(name, { ...key, size });
          dead.push(deadLetter(addressed, size, 'larger than its topic takes'));
        } else {
          sendable.push(addressed);
        }
      }
      return {
        sendable,
        dead,
        notes: [...added].map(([name, key]) => ({
          key: `${prefix}${name}`,
          value: JSON.stringify(key),
        })),
        committed: () => added.forEach((key, name) => parked.set(name, key)),
      };
    },
    /** The number of parked keys, and the first few of them. */
    shown: (): ParkedKeys => ({ count: parked.size, keys: [...parked.values()].slice(0, SHOWN) }),
  };
}
