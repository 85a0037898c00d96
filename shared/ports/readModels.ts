/** The read models port: queries, and the projector's writes. Contract tests: test/contracts/readModels.ts. */
import type { ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import type { Bounds, Page, PageOf } from '../readModels/page.ts';
import type { ParkedStream, ParkedStreams, ReadModelQueries } from '../readModels/queries.ts';
import type { TurnIndex } from '../search/turnIndex.ts';
import type { OpenTurn, TranscriptRows } from '../sessions/sqlQueries.ts';
import type { Checkpoint, Position } from './eventStore.ts';

export type {
  Bounds,
  OpenTurn,
  Page,
  PageOf,
  ParkedStream,
  ParkedStreams,
  ReadModelQueries,
  TranscriptRows,
};

/** An acknowledged write of a turn. */
export interface TurnWrite {
  position: Position;
  account_id: string;
  session_id: string;
}

/** The acknowledged creation of an agent. */
export interface AgentCreation {
  position: Position;
  account_id: string;
  agent_id: string;
}

export interface ReadModels extends ReadModelQueries {
  /** Resolves true once everything up to the position is visible, false after `timeoutMs`. */
  untilShown(position: Position, timeoutMs: number): Promise<boolean>;
  /**
   * Makes later queries that this write concerns wait for it, so that its writer need not; false when
   * waiting is pointless. Absent when other processes answer queries.
   */
  showLater?(write: TurnWrite | AgentCreation): boolean;
  close(): Promise<void>;
}

/** The progress of a projection after a batch; a batch with a position has this shape. */
export interface AppliedUpTo {
  /** Everything up to here is visible. */
  position: Position;
  /** Where to resume; undefined before the first event. */
  checkpoint: Checkpoint | undefined;
}

/** The projector's part of the port. */
export interface ProjectionStore extends TurnIndex {
  /** The number of events that it applies fastest at a time; 1,000 when undefined. */
  batchSize?: number;
  /** Where to resume; undefined for the beginning. */
  checkpoint(): Promise<Checkpoint | undefined>;
  /**
   * Applies events with decrypted texts, one batch at a time. A batch that changes many rows is applied in
   * parts; the checkpoint moves in the transaction of each part. Events that were applied before change
   * nothing; a stream with an event that can't be applied is parked without affecting others. Resolves
   * with the streams parked by this batch. Errors: `store_unavailable` (the checkpoint tells which
   * parts were applied; the batch may be retried), `position_invalid` when `reached` is not a valid
   * position (nothing changed).
   */
  apply(events: readonly ReadableEvent[], reached: AppliedUpTo): Promise<ParkedStream[]>;
  close(): Promise<void>;
}

/** How far the active projector is behind the log, as other processes see it. */
export interface ProjectorLag {
  /** The events still to apply; null when some are not read yet. */
  events: number | null;
  /** The age of the oldest of them, in milliseconds; 0 when there is none. */
  ms: number;
}

/** The last report of the active projector. */
export interface ProjectorBeat {
  lag: ProjectorLag;
  /** Milliseconds since the report, by the clock of the read models' server. */
  silent_ms: number;
}

/** The projector's part when several processes compete and one is active at a time. */
export interface ActiveProjectionStore extends ProjectionStore {
  /**
   * Reports to query processes that this projector is active, and its lag. Waits for the current
   * batch. Errors: `store_unavailable`.
   */
  beat(lag: ProjectorLag): Promise<void>;
  /** Aborts when this process is no longer the active projector: `apply` then changes nothing. */
  lost: AbortSignal;
  /**
   * Marks the read models as caught up and drops the generation that they replaced; idempotent.
   * Errors: `store_unavailable`.
   */
  complete(): Promise<void>;
  /**
   * The position of the abandoned checkpoint; undefined while the read models are valid. Errors:
   * `store_unavailable`.
   */
  refused(): Promise<Position | undefined>;
  /**
   * Abandons the checkpoint because the log was restored, and records that for the next projector:
   * the read models still answer queries, but must be rebuilt before anything is applied. Errors:
   * `store_unavailable`.
   */
  giveUp(checkpoint: Checkpoint): Promise<void>;
  /**
   * Publishes to other processes why the log is not followed; undefined once it is again. Errors:
   * `store_unavailable`.
   */
  noteLogChanged(reason: string | undefined): Promise<void>;
}

/** A generation of the read models that is built while another one answers queries. */
export interface RebuildStore extends ProjectionStore {
  /**
   * Empties a generation whose checkpoint the log does not contain. Errors: `store_unavailable`.
   */
  startOver(): Promise<void>;
  /**
   * Aborts when this process can no longer write the generation; the next rebuild resumes it.
   * Absent where that can't happen.
   */
  lost?: AbortSignal;
  /**
   * Makes the generation answer queries, and closes it. If the active generation is further ahead,
   * it is stopped there, and `reach` is called with its position to apply the remaining events.
   */
  publish(reach: (position: Position) => Promise<void>): Promise<void>;
  /** Closes and deletes the generation. Absent where `apply` never throws `storage_full`. */
  discard?(): Promise<void>;
}
