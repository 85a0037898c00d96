import { belongsIn, isErasure } from '../eventlog/eventTypes.ts';
import { isValidMetadata, toDomainEvent } from '../eventlog/domainEvent.ts';
import { decodeOpenedEvent, type ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import { storageKeys, type StorageKey } from '../storage/projection.ts';
import { projectUnknownEvent, project, type Change } from './project.ts';

/** A stored event with its changes, or the error that prevents reading it. */
export interface PlannedEvent {
  stored: ReadableEvent;
  changes: Change[];
  /** The rows that count it, whether or not it can be applied. */
  counts: readonly StorageKey[];
  /** True for an erasure, which also applies to a parked stream. */
  erases: boolean;
  error: string | undefined;
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

function changesOf(stored: ReadableEvent): Change[] {
  if (stored.unsaid)
    throw new Error('the key of its text is destroyed, and no erasure of the stream says so');
  const recorded = decodeOpenedEvent(stored);
  const event = toDomainEvent(recorded);
  // An event of another application is no part of the stream, which ends before it.
  if (!event) return belongsIn(recorded.stream, recorded.type) ? projectUnknownEvent(recorded) : [];
  if (!isValidMetadata(recorded.metadata)) throw new Error('its metadata does not fit the schema');
  if (!belongsIn(recorded.stream, event.type))
    throw new Error('its type does not belong in this stream');
  return project(recorded, event);
}

/** First step of a batch: decodes and projects every event without loading rows. Never throws. */
export function planBatch(events: readonly ReadableEvent[]): PlannedEvent[] {
  let counts: PlannedEvent['counts'] = [];
  return events.map((stored) => {
    const erases = isErasure(stored.type);
    counts = storageKeys(stored, counts);
    try {
      return { stored, counts, erases, changes: changesOf(stored), error: undefined };
    } catch (error) {
      return { stored, counts, erases, changes: [], error: messageOf(error) };
    }
  });
}
