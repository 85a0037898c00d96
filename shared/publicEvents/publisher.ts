import type { PublicEvent } from './publicEvent.ts';
import type { Checkpoint, Position } from '../ports/eventStore.ts';

/** A key none of whose events are published any more, and the first of them. */
export interface ParkedKey {
  topic: string;
  key: string;
  event_id: string;
  position: Position;
  /** Of its message, in bytes. */
  size: number;
}

/** How many keys are parked, and the first few of them. */
export interface ParkedKeys {
  count: number;
  keys: readonly ParkedKey[];
}

/** The right to publish, until it is taken or a call fails; then only `close` may be called. */
export interface Publication {
  /** Where the last publication ended; undefined when nothing was ever published. */
  checkpoint: Checkpoint | undefined;
  /**
   * Publishes the events in order and moves the checkpoint, both or neither. Consumers of committed
   * events see each once. An event that is larger than its topic takes parks its key: it and all
   * later ones of the key are set aside instead, and named there.
   * Errors: `publisher_fenced` (somebody else has taken over), `publisher_unavailable` (the outcome
   * may be unknown), `configuration_invalid` (a right is missing, too many keys are parked).
   */
  publish(events: readonly PublicEvent[], checkpoint: Checkpoint): Promise<void>;
  /**
   * Shows others that this publisher is alive while it has nothing to publish. Errors: those of
   * publish.
   */
  beat(): Promise<void>;
  /**
   * Visits the id of every event that was ever published, or was set aside with its key, and is
   * still kept; in any order, some of them perhaps several times.
   * Errors: `publisher_unavailable`, the signal's reason.
   */
  visitPublished(visit: (eventId: string) => void, signal: AbortSignal): Promise<void>;
  /** What is parked, as of the last publication. */
  parked(): ParkedKeys;
  close(): Promise<void>;
}

/** The publisher port: where public events leave the service. */
export interface Publisher {
  /**
   * Takes over from whoever published before, whose unfinished work is undone and who can publish
   * no more.
   * Errors: `publisher_fenced` (somebody else was quicker), `publisher_unavailable`.
   */
  takeOver(): Promise<Publication>;
  /**
   * The checkpoint that was committed last, without taking over from anybody; undefined when
   * nothing was ever published. Errors: `publisher_unavailable`, `configuration_invalid` (where it
   * is kept can't keep it).
   */
  checkpoint(): Promise<Checkpoint | undefined>;
  /**
   * A sentence on what was published and is gone, such as a topic that was made again; undefined
   * when all is there. Errors: those of checkpoint.
   */
  lost(): Promise<string | undefined>;
  /**
   * A text that changes whenever anyone publishes or beats; taking over alone does not change it.
   * Errors: those of checkpoint.
   */
  activity(): Promise<string>;
  /**
   * True while nothing was ever published where this publisher publishes to.
   * Errors: `publisher_unavailable`.
   */
  isEmpty(): Promise<boolean>;
  close(): Promise<void>;
}
