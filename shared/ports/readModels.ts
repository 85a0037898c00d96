/** The read models port: queries, and the projector's writes. Contract tests: test/contracts/readModels.ts. */
import type { AccountQueries } from '../accounts/sqlQueries.ts';
import type { AgentQueries } from '../agents/sqlQueries.ts';
import type { ErasureQueries } from '../erasure/sqlQueries.ts';
import type { ReadableEvent } from '../eventlog/encryption/openTexts.ts';
import type { Bounds, Page, PageOf } from '../readModels/page.ts';
import type { RowOf } from '../readModels/table.ts';
import type { PARKED_STREAMS } from '../readModels/tables.ts';
import type { ReplayQueries } from '../replays/sqlQueries.ts';
import type { IndexQueries } from '../search/sqlQueries.ts';
import type { TurnIndex } from '../search/turnIndex.ts';
import type { OpenTurn, SessionQueries, TranscriptRows } from '../sessions/sqlQueries.ts';
import type { UsageQueries } from '../usage/sqlQueries.ts';
import type { WebhookQueries } from '../webhooks/sqlQueries.ts';
import type { Checkpoint, Position } from './eventStore.ts';

export type { Bounds, OpenTurn, Page, PageOf, TranscriptRows };

/** A stream with an event that could not be applied; later events are skipped until a rebuild. */
export type ParkedStream = RowOf<typeof PARKED_STREAMS>;

export interface ParkedStreams {
  count: number;
  streams: ParkedStream[];
}

/** All queries reject with `store_unavailable` when the read models can't be reached or have never caught up. */
export interface ReadModelQueries
  extends
    AccountQueries,
    AgentQueries,
    SessionQueries,
    IndexQueries,
    UsageQueries,
    WebhookQueries,
    ReplayQueries,
    ErasureQueries {
  /** The first parked streams by name, and how many there are. The limit is ≥ 1. */
  listParkedStreams(limit: number): Promise<ParkedStreams>;
}

export interface ReadModels extends ReadModelQueries {
  /** Resolves true once everything up to the position is shown, false after `timeoutMs`. */
  untilShown(position: Position, timeoutMs: number): Promise<boolean>;
  /**
   * Makes queries of sessions wait for the position, so that its writer need not; false where waiting
   * would be pointless. Absent where other processes answer queries.
   */
  showLater?(position: Position): boolean;
  close(): Promise<void>;
}

/** Where a batch leaves a projection: a batch itself is one, once it has a position. */
export interface Reached {
  /** Everything up to here is shown. */
  position: Position;
  /** Where to resume; undefined while no event was applied. */
  checkpoint: Checkpoint | undefined;
}

/** The projector's half. */
export interface ProjectionStore extends TurnIndex {
  /** Where to resume; undefined from the beginning. */
  checkpoint(): Promise<Checkpoint | undefined>;
  /**
   * Applies the events, whose texts stand open, and moves the checkpoint in one transaction, one batch at a time. Events
   * that were applied before change nothing; a stream with an event that can't be applied is
   * parked, which never keeps the others back. Resolves with the streams that this batch parked.
   * Errors: `store_unavailable` (nothing was changed; the same batch may be applied again),
   * `position_invalid` when what was reached can be no position of any log (nothing was changed).
   */
  apply(events: readonly ReadableEvent[], reached: Reached): Promise<ParkedStream[]>;
  close(): Promise<void>;
}

/** How far the active projector is behind the log, as it tells the other processes. */
export interface ProjectorLag {
  /** The events still to apply; null where some of them are not read yet. */
  events: number | null;
  /** The age of the oldest of them, in milliseconds; 0 where there is none. */
  ms: number;
}

/** What the active projector has told last. */
export interface ProjectorBeat {
  lag: ProjectorLag;
  /** How long ago, in milliseconds, by the clock of the read models' server. */
  silent_ms: number;
}

/** The projector's half where several processes may project and one of them is active at a time. */
export interface ActiveProjectionStore extends ProjectionStore {
  /**
   * Tells whoever answers queries that this projector is at work, and how far it is. Waits for the
   * batch at work. Errors: `store_unavailable`.
   */
  beat(lag: ProjectorLag): Promise<void>;
  /** Aborted once this process is not the active projector any more: `apply` changes nothing then. */
  lost: AbortSignal;
  /**
   * Says that the read models have caught up, and lets go of what they replaced. May be said again.
   * Errors: `store_unavailable`.
   */
  complete(): Promise<void>;
  /**
   * The position of the checkpoint that was given up; undefined where the read models can be
   * trusted. Errors: `store_unavailable`.
   */
  refused(): Promise<Position | undefined>;
  /**
   * Gives the checkpoint up, because the log was restored, and notes so for whoever projects next:
   * the read models answer on, and are to be rebuilt before anything is applied again.
   * Errors: `store_unavailable`.
   */
  giveUp(checkpoint: Checkpoint): Promise<void>;
  /**
   * Notes for the other processes why the log is not followed; undefined once it is again.
   * Errors: `store_unavailable`.
   */
  noteLogChanged(reason: string | undefined): Promise<void>;
}

/** A generation of the read models that is built beside the one that answers queries. */
export interface RebuildStore extends ProjectionStore {
  /** Empties the generation, whose checkpoint the log does not know. Errors: `store_unavailable`. */
  startOver(): Promise<void>;
  /**
   * Aborted when this process can no longer write the generation; the next rebuild goes on. Absent
   * where that can't happen.
   */
  lost?: AbortSignal;
  /**
   * Makes the generation the one that answers queries, and closes it. Where the other one has
   * meanwhile come further it is held there, and `reach` is called with its position: it applies
   * the events up to there, as far as the log has them.
   */
  publish(reach: (position: Position) => Promise<void>): Promise<void>;
}
