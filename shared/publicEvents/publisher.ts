import type { PublicEvent } from './publicEvent.ts';
import type { Checkpoint, Position } from '../ports/eventStore.ts';

/** A parked key, whose events are no longer published, and its first unpublished event. */
export interface ParkedKey {
  topic: string;
  key: string;
  event_id: string;
  position: Position;
  /** Size of the message in bytes. */
  size: number;
}

/** The number of parked keys, and the first few of them. */
export interface ParkedKeys {
  count: number;
  keys: readonly ParkedKey[];
}

/** The right to publish. Once it is lost or a call fails, only `close` may be called. */
export interface Publication {
  /** The checkpoint of the last publication; undefined when nothing was ever published. */
  checkpoint: Checkpoint | undefined;
  /**
   * Publishes the events in order and moves the checkpoint atomically. Consumers that read only
   * committed events see each event once. An event that exceeds the size limit of its topic parks
   * its key: this and all later events of the key are recorded as parked instead of published.
   * Errors: `publisher_fenced` (another publisher has taken over), `publisher_unavailable` (the
   * outcome may be unknown), `configuration_invalid` (a permission is missing, or too many keys are
   * parked).
   */
  publish(events: readonly PublicEvent[], checkpoint: Checkpoint): Promise<void>;
  /**
   * Signals other publishers that this one is alive while it has nothing to publish. Errors: those
   * of `publish`.
   */
  beat(): Promise<void>;
  /**
   * Visits the ids of all events that were published or parked and are still retained, in any order
   * and possibly more than once.
   * Errors: `publisher_unavailable`, the abort reason.
   */
  visitPublished(visit: (eventId: string) => void, signal: AbortSignal): Promise<void>;
  /** The parked keys as of the last publication. */
  parked(): ParkedKeys;
  close(): Promise<void>;
}

/** The publisher port: delivers public events to consumers outside the service. */
export interface Publisher {
  /**
   * Takes over from the previous publisher. Rolls back its unfinished publication and prevents it
   * from publishing. Errors: `publisher_fenced` (another publisher was faster),
   * `publisher_unavailable`.
   */
  takeOver(): Promise<Publication>;
  /**
   * Reads the last committed checkpoint without taking over; undefined when nothing was ever
   * published. Errors: `publisher_unavailable`, `configuration_invalid` (the storage of the
   * checkpoint is unsuitable).
   */
  checkpoint(): Promise<Checkpoint | undefined>;
  /**
   * A sentence that describes lost publications, such as those of a recreated topic; undefined when
   * nothing was lost. Errors: those of `checkpoint`.
   */
  lost(): Promise<string | undefined>;
  /**
   * A text that changes whenever any publisher publishes or beats. Taking over does not change it.
   * Errors: those of `checkpoint`.
   */
  activity(): Promise<string>;
  /**
   * True while nothing was ever published to the destination of this publisher.
   * Errors: `publisher_unavailable`.
   */
  isEmpty(): Promise<boolean>;
  close(): Promise<void>;
}
