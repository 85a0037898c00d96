/**
 * The event store port: streams of immutable events with optimistic concurrency. Every adapter
 * passes test/contracts/eventStore.ts. Events cross this port encoded; shared/eventlog/codec.ts is
 * what encodes and decodes them.
 */
import type { TextsToClose } from '../eventlog/encryption/protectedText.ts';

/**
 * An event's place in the whole log. Opaque, but positions of one store compare as text: `a < b`
 * means that a was written before b.
 */
export type Position = string & { readonly __position: unique symbol };

/**
 * The revision that the stream's last event must have for an append to happen; `no_stream` for the
 * first append.
 */
export type ExpectedRevision = number | 'no_stream';

export interface EncodedEvent {
  /** A UUID. Appending the same ids again at the same place succeeds without writing. */
  id: string;
  type: string;
  /** JSON text. */
  data: string;
  /** JSON text. */
  metadata: string;
  /** Texts whose boxes are to be put into the data before it is stored (`withBoxes`). */
  toClose?: TextsToClose;
}

export interface StoredEvent extends Omit<EncodedEvent, 'toClose'> {
  stream: string;
  /** 0-based place in the stream. */
  revision: number;
  position: Position;
}

export interface AppendResult {
  /** Revision of the last event of the append. */
  revision: number;
  /** Position of the last event of the append. */
  position: Position;
}

/**
 * The most that one append may carry: UTF-8 bytes of its events' data and metadata. EventStoreDB
 * takes 1 MiB by default, in which it counts the events' types as well.
 */
export const MAX_APPEND_BYTES = 1024 * 1024 - 16 * 1024;

export interface ReadOptions {
  direction: 'forwards' | 'backwards';
  /** First revision to read, inclusive; default: the first one forwards, the last one backwards. */
  from?: number;
  /** The most events to return, ≥ 1. */
  limit: number;
  /** The page ends early, with the event that makes it as large as this (`bytesOf`). */
  maxBytes?: number;
}

/** What an event counts as where events are bounded by size: UTF-8 bytes of data and metadata. */
export const bytesOf = ({ data, metadata }: Pick<StoredEvent, 'data' | 'metadata'>): number =>
  Buffer.byteLength(data) + Buffer.byteLength(metadata);

/**
 * How far a follower of the log has come: the last event that it has dealt with, and so which log
 * it follows. A log that does not hold that event there is another one.
 */
export interface Checkpoint {
  /** Of the log as it was then; shared/eventlog/identity/logIdentity.ts says what it is. */
  log_id: string;
  position: Position;
  event_id: string;
  /** As its metadata has it; empty for one that has none. */
  event_hash: string;
}

/**
 * Consecutive events of the log, in order. An empty batch reports progress only: that the
 * subscription has caught up, or a position passed.
 */
export interface EventBatch {
  events: StoredEvent[];
  /**
   * Everything up to here has been considered, which may lie beyond the last event where others
   * write to the log too; undefined while an empty log has shown nothing.
   */
  position: Position | undefined;
  /** Where to resume after this batch; undefined while no event has come. */
  checkpoint: Checkpoint | undefined;
  /** True when, at the moment of reading, no later event existed. */
  caughtUp: boolean;
}

export interface SubscribeOptions {
  /**
   * Exclusive start; the first event when absent. A checkpoint is compared with the log, now and
   * whenever the subscription resumes; of a position that somebody names no more can be said than
   * that it is one.
   */
  after?: Checkpoint | Position | undefined;
  /** The most events in a batch. */
  batchSize: number;
  /** Ends the iteration without an error. */
  signal: AbortSignal;
}

export interface EventStore {
  /**
   * Writes the events to the end of the stream, all or none, durable when it resolves. Sending the
   * same ids again at the same place resolves with the first outcome.
   * Errors: `stream_conflict` (the stream is at another revision), `event_id_reused` (an id exists
   * elsewhere; a server that keeps no index of ids has its adapter notice it among the events of
   * late and near the place), `event_invalid` (an empty append, or an event or append over the
   * store's size limit), `store_unavailable` (retriable with the same ids).
   */
  append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EncodedEvent[],
  ): Promise<AppendResult>;

  /**
   * Events of one stream in the asked direction; empty when there is none in that range.
   * Errors: `stream_damaged` when the store can tell that events of the stream were deleted or are
   * hidden, `store_unavailable`.
   */
  readStream(stream: string, options: ReadOptions): Promise<StoredEvent[]>;

  /**
   * All events of all streams after a position: first what is there, then live, for ever. The next
   * batch is read only when the consumer asks for it. Yields an empty batch when it has nothing
   * (more) to deliver and has just caught up.
   * Errors: `log_changed` when the log does not hold the event of a checkpoint, `log_restored` when
   * that was declared (shared/eventlog/identity/logIdentity.ts), `position_invalid` when `after` is a
   * position that this log does not have; `store_unavailable` (the caller resumes from its last
   * checkpoint).
   */
  subscribe(options: SubscribeOptions): AsyncIterable<EventBatch>;

  /**
   * The end of the log: no event lies beyond it; undefined in an empty log. Where others write to
   * the log too it may be the position of an event of theirs, which a subscription that has caught
   * up reaches within about a second all the same.
   * Errors: `store_unavailable`.
   */
  head(): Promise<Position | undefined>;

  /** The first event of the log; undefined while it is empty. Errors: `store_unavailable`. */
  firstEvent(): Promise<StoredEvent | undefined>;

  /**
   * The event at exactly this position; undefined where none begins there.
   * Errors: `store_unavailable`.
   */
  eventAt(position: Position): Promise<StoredEvent | undefined>;

  /**
   * One sentence on why the store can't be used now, with the cause; undefined while it can. Known
   * at once, without a call.
   */
  trouble(): string | undefined;

  /** Finishes the appends that were accepted, then lets go of every resource. */
  close(): Promise<void>;
}

/** What only reads the log. */
export type EventLog = Omit<EventStore, 'append'>;
