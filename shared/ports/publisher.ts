import type { PublicEvent } from '../publicEvents/publicEvent.ts';
import type { Checkpoint } from './eventStore.ts';

/** The right to publish, until it is taken or a call fails; then only `close` may be called. */
export interface Publication {
  /** Where the last publication ended; undefined when nothing was ever published. */
  checkpoint: Checkpoint | undefined;
  /**
   * Publishes the events in order and moves the checkpoint, both or neither. Consumers of committed
   * events see each once.
   * Errors: `publisher_fenced` (somebody else has taken over), `publisher_unavailable` (the outcome
   * may be unknown).
   */
  publish(events: readonly PublicEvent[], checkpoint: Checkpoint): Promise<void>;
  /**
   * Shows others that this publisher is alive while it has nothing to publish. Errors: those of
   * publish.
   */
  beat(): Promise<void>;
  /**
   * Visits the id of every event that was ever published, each as often as it was.
   * Errors: `publisher_unavailable`, the signal's reason.
   */
  visitPublished(visit: (eventId: string) => void, signal: AbortSignal): Promise<void>;
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
