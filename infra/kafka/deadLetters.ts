import { TurnlogError } from '../../shared/lib/errors/turnlogError.ts';
import type { ParkedKey, ParkedKeys } from '../../shared/publicEvents/publisher.ts';
import { tellsErasure } from '../../shared/publicEvents/erasedTexts.ts';
import type { PublicEvent } from '../../shared/publicEvents/publicEvent.ts';
import type { CheckpointRecords } from './checkpoints/recordReader.ts';
import { readParkedKeyRecord } from './checkpoints/recordValues.ts';
import { messageBytes, type TextMessage } from './batching.ts';

/** All of them are read at a take-over and kept in memory. */
const MAX_PARKED = 1_000;
const SHOWN = 5;

/** A message of ours and where it is to go. */
export interface AddressedEvent {
  event: PublicEvent;
  topic: string;
  message: TextMessage;
}

/** What becomes of the messages of a publication. */
interface Sorted {
  sendable: AddressedEvent[];
  /** To the dead-letter topic. */
  dead: TextMessage[];
  /** Notes of the keys that are parked from here on. */
  notes: TextMessage[];
  /** Remembers those keys, once the publication is committed. */
  committed: () => void;
}

const nameOf = ({ topic, key }: Pick<ParkedKey, 'topic' | 'key'>): string => `${topic}/${key}`;

function deadLetter({ event, topic }: AddressedEvent, size: number, reason: string): TextMessage {
  const { id, type, channel, key, revision, position } = event;
  const stream = `${channel.slice(0, -1)}-${key}`;
  const value = { reason, topic, event_id: id, type, stream, revision, position, size };
  return { key, value: JSON.stringify(value) };
}

/** The id of the event that a dead letter names; undefined for somebody else's. */
export function deadLetterEventId(value: Buffer | null): string | undefined {
  try {
    const { event_id } = JSON.parse(value?.toString() ?? '{}') as { event_id?: unknown };
    return typeof event_id === 'string' ? event_id : undefined;
  } catch {
    return undefined;
  }
}

/** Without a dead-letter topic nothing can be parked. Errors: `configuration_invalid`. */
function requireParking(parks: boolean, count: number, { topic, event_id, size }: ParkedKey): void {
  const what = `The message of the event ${event_id} has ${size} bytes, more than max.message.bytes of the topic ${topic} lets it take`;
  if (!parks) throw new TurnlogError('configuration_invalid', `${what}. Raise it and go on.`);
  if (count >= MAX_PARKED)
    throw new TurnlogError(
      'configuration_invalid',
      `${what}, and ${MAX_PARKED} keys are parked already. Raise max.message.bytes and restart the relay.`,
    );
}

/**
 * The keys of which nothing is published any more, because one of their events is larger than its
 * topic takes: without it, the later ones would be a history with a gap.
 */
export function createDeadLetterQueue(notes: CheckpointRecords, prefix: string, parks: boolean) {
  const parked = new Map<string, ParkedKey>();
  for (const key of notes.keys()) {
    const known = key.startsWith(prefix) ? readParkedKeyRecord(notes, key) : undefined;
    if (known) parked.set(key.slice(prefix.length), known);
  }

  return {
    /**
     * Sorts messages by whether their topics take them. Errors: `configuration_invalid` when too
     * many keys are parked, or none may be.
     */
    sort(messages: readonly AddressedEvent[], maxBytesOf: (topic: string) => number): Sorted {
      const added = new Map<string, ParkedKey>();
      const sendable: AddressedEvent[] = [];
      const dead: TextMessage[] = [];
      for (const addressed of messages) {
        const { event, topic, message } = addressed;
        const key = { topic, key: event.key, event_id: event.id, position: event.position };
        const name = nameOf(key);
        const size = messageBytes(message);
        const first = parked.get(name) ?? added.get(name);
        // That all of the key is erased leaves no gap, and what was published before has to go.
        if (first && !tellsErasure(event)) {
          dead.push(
            deadLetter(addressed, size, `the event ${first.event_id} of its key is parked`),
          );
        } else if (size > maxBytesOf(topic)) {
          requireParking(parks, parked.size + added.size, { ...key, size });
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
    /** How many keys are parked, and the first few. */
    shown: (): ParkedKeys => ({ count: parked.size, keys: [...parked.values()].slice(0, SHOWN) }),
  };
}
