/**
 * The event store port: streams of immutable events with optimistic concurrency. Every adapter
 * passes test/contracts/eventStore.ts. Events cross this port encoded (shared/eventlog/codec.ts).
 */
import type { TextsToEncrypt } from '../eventlog/encryption/protectedText.ts';

/**
 * An event's position in the whole log. Opaque, but positions of one store compare as text: `a < b`
 * means that a was written before b.
 */
export type Position = string & { readonly __position: unique symbol };

/**
 * The revision that the stream's last event must have for an append to happen; `no_stream` for the
 * first append.
 */
export type ExpectedRevision = number | 'no_stream';

export interface EncodedEvent {
  /** A UUID. Appending the same ids again at the same revision succeeds without writing. */
  id: string;
  type: string;
  /** JSON text. */
  data: string;
  /** JSON text. */
  metadata: string;
  /** Texts to encrypt into the data before it is stored (`withCiphertexts`). */
  toClose?: TextsToEncrypt;
}

export interface StoredEvent extends Omit<EncodedEvent, 'toClose'> {
  stream: string;
  /** 0-based index in the stream. */
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
 * The size limit of one append: 1,032,192 UTF-8 bytes of its events' data and metadata, as measured
 * on EventStoreDB 23.10 and 24.10, whose own limit is 1 MiB by default. The rest is left for event
 * types, which 25.0 counts as well.
 */
export const MAX_APPEND_BYTES = 1024 * 1024 - 16 * 1024;

export interface ReadOptions {
  direction: 'forwards' | 'backwards';
  /** First revision to read, inclusive; default: the first one forwards, the last one backwards. */
  from?: number;
  /** The most events to return, ≥ 1. */
  limit: number;
  /** Ends the page with the event that reaches this size (`bytesOf`). */
  maxBytes?: number;
}

/** The size of an event under size limits: UTF-8 bytes of data and metadata. */
export const bytesOf = ({ data, metadata }: Pick<StoredEvent, 'data' | 'metadata'>): number =>
  Buffer.byteLength(data) + Buffer.byteLength(metadata);

/** The size of several events. */
export const totalBytesOf = (events: readonly Parameters<typeof bytesOf>[0][]): number =>
  events.reduce((sum, event) => sum + bytesOf(event), 0);

/**
 * A follower's progress: the last event that it has processed, which also identifies the log. A log
 * without that event at that position is a different one.
 */
export interface Checkpoint {
  /** The log's id at that position (shared/eventlog/identity/logIdentity.ts). */
  log_id: string;
  position: Position;
  event_id: string;
  /** From its metadata; empty if it has none. */
  event_hash: string;
}

/**
 * Consecutive events of the log, in order. An empty batch only reports progress: that the
 * subscription has caught up, or a new position.
 */
export interface EventBatch {
  events: StoredEvent[];
  /**
   * The position up to which the log was read. It may be beyond the last event when other programs
   * write to the log; undefined while the log is empty.
   */
  position: Position | undefined;
  /** Where to resume after this batch; undefined before the first event. */
  checkpoint: Checkpoint | undefined;
  /** True when, at the moment of reading, no later event existed. */
  caughtUp: boolean;
}

export interface SubscribeOptions {
  /**
   * Exclusive start; the first event when undefined. A checkpoint is verified against the log
   * whenever the subscription begins or resumes; a bare position can only be checked for existence.
   */
  after?: Checkpoint | Position | undefined;
  /** The most events in a batch. */
  batchSize: number;
  /** Ends the iteration without an error. */
  signal: AbortSignal;
}

export interface EventStore {
  /**
   * Appends all events or none; durable when it resolves. Repeating the same ids at the same
   * revision resolves with the first result. Errors: `stream_conflict` (the stream is at another
   * revision), `event_id_reused` (an id exists elsewhere; an adapter whose server has no index of
   * ids checks recent and nearby events), `event_invalid` (an empty append, or an event or append
   * over the size limit), `store_unavailable` (retriable with the same ids).
   */
  append(
    stream: string,
    expected: ExpectedRevision,
    events: readonly EncodedEvent[],
  ): Promise<AppendResult>;

  /**
   * Reads events of one stream; empty when there are none in the range. Errors: `stream_damaged`
   * when the store detects deleted or hidden events, `store_unavailable`. The answer is checked
   * where the store is opened (shared/eventlog/reading/checkedPages.ts).
   */
  readStream(stream: string, options: ReadOptions): Promise<StoredEvent[]>;

  /**
   * All events of all streams after a position: the existing ones, then live ones, indefinitely.
   * Reads the next batch on demand. Yields an empty batch when it has caught up with nothing (more)
   * to deliver. Errors: `log_changed` when the log does not hold a checkpoint's event,
   * `log_restored` when that was declared (shared/eventlog/identity/logIdentity.ts),
   * `position_invalid` when `after` is not a position of this log, `store_unavailable` (the caller
   * resumes from its last checkpoint).
   */
  subscribe(options: SubscribeOptions): AsyncIterable<EventBatch>;

  /**
   * The end of the log; undefined while it is empty. When other programs write to the log it may be
   * the position of one of their events, which a caught-up subscription still reaches within about
   * a second. Errors: `store_unavailable`.
   */
  head(): Promise<Position | undefined>;

  /** The first event of the log; undefined while it is empty. Errors: `store_unavailable`. */
  firstEvent(): Promise<StoredEvent | undefined>;

  /**
   * The event at exactly this position; undefined when there is none. Errors: `store_unavailable`.
   */
  eventAt(position: Position): Promise<StoredEvent | undefined>;

  /**
   * Why the store can't be used at present, as one sentence; undefined while it can. Synchronous.
   */
  trouble(): string | undefined;

  /** Completes accepted appends, then releases all resources. */
  close(): Promise<void>;
}

/** The reading part of an event store. */
export type EventLog = Omit<EventStore, 'append'>;
