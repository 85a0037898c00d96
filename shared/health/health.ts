import type { GroupHealth } from '../ports/toolbox.ts';
import type { Position } from '../ports/eventStore.ts';
import type { DamagedRow } from '../readModels/integrity/damagedRows.ts';
import type { ParkedKeys } from '../publicEvents/publisher.ts';
import type { ParkedStreams, ProjectorLag } from '../ports/readModels.ts';

/** The health of the relay. */
export interface RelayHealth {
  /**
   * `standing_by` while another relay publishes; `retrying` after a failure, until it makes
   * progress.
   */
  state: 'starting' | 'relaying' | 'standing_by' | 'retrying';
  /** Every event up to this position is published. */
  position: Position | undefined;
  /** The age of the oldest unpublished event; null while another relay publishes. */
  lag_ms: number | null;
  /** Why the relay cannot publish. Always present while it is `retrying`. */
  reason?: string | undefined;
  /** Keys whose events are not published; absent if there are none. */
  parked?: ParkedKeys | undefined;
}

/** The health of a projector that shares its work with other instances. */
export interface ProjectorHealth {
  /** `standing_by` while another projector is active, or none can be. */
  state: 'standing_by' | 'active';
  /** The number of events to apply and the age of the oldest one; null when unknown. */
  lag_events: number | null;
  lag_ms: number | null;
  /** A sentence that says why turns cannot be indexed; absent while they can. */
  search_reason?: string;
}

/** A status report of the prover, sent on each change. Plain data, so that a thread can send it. */
export interface ProverReport {
  state: TransparencyLogHealth['state'];
  /** Number of leaves under the newest checkpoint; undefined when unknown. */
  size?: number;
  /** The newest checkpoint covers every event up to this position. */
  position?: Position | undefined;
  /** The time of its signature, in milliseconds since 1970. */
  signedAt?: number | undefined;
  /** A sentence that says why the prover makes no progress. */
  trouble?: string;
}

/** The health of the witnesses of the transparency log. */
export interface WitnessesHealth {
  /** The number of cosignatures that a checkpoint needs. */
  wanted: number;
  /** The number of witnesses that cosigned the served checkpoint. */
  reached: number;
  /** The names of the witnesses that did not. */
  missing: string[];
  /**
   * A sentence, present when cosignatures have been missing for more than LIMITS.witness.shortMs.
   */
  reason?: string;
}

/**
 * The health of the transparency log. Values are null when unknown, or known only to another process;
 * `trouble`, `doubt` and too few cosignatures are those that any process reports.
 */
export interface TransparencyLogHealth {
  /** `standing_by` while another process grows the transparency log, or none can. */
  state: 'standing_by' | 'active';
  /** Number of leaves under the newest checkpoint. */
  size: number | null;
  /** The age of the oldest event that no checkpoint covers. */
  lag_ms: number | null;
  /** When this process signed the newest checkpoint. */
  signed_at: string | null;
  /** A sentence that says why the transparency log does not grow; absent while it does. */
  trouble?: string;
  /**
   * A sentence, until the next start, where the log has events and no record that it was ever signed,
   * or where an outvoted witness contradicts it.
   */
  doubt?: string;
  /**
   * Present when witnesses are configured and this process requests their cosignatures, or another
   * one reports that too few cosigned.
   */
  witnesses?: WitnessesHealth;
}

/** The findings of one process that make the health of the transparency log worse. */
export type TransparencyFinding = Pick<TransparencyLogHealth, 'trouble' | 'doubt' | 'witnesses'>;

/** The findings of all processes on their transparency log. */
export interface TransparencyFindings {
  /**
   * Reports what this process found, nothing if undefined, and resolves with what the others report.
   * Throws `store_unavailable`.
   */
  exchange(own: TransparencyFinding | undefined): Promise<TransparencyFinding[]>;
  /** Withdraws the report of this process. Throws `store_unavailable`. */
  withdraw(): Promise<void>;
}

/** The health of the read models. */
export interface ProjectionHealth {
  /**
   * True once the read models have caught up with the log. False again while they do not follow the
   * log.
   */
  caught_up: boolean;
  /** The lag of the read models, when another process runs the projector. */
  lag?: ProjectorLag;
  /** A sentence that says why they do not follow the log; absent while they do. */
  late?: string;
  /** A sentence that says why they cannot be trusted; undefined when they can. */
  doubt: string | undefined;
  /** Number of turns that search does not find yet, at most LIMITS.search.countedTurns. */
  unindexed_turns?: number;
  /** A sentence that says why search does not find turns; absent while it does. */
  search_reason?: string;
  /**
   * True while texts or words of erased turns still have to be removed from the files of the read models.
   */
  erases_words?: boolean;
  /** Streams that a projection could not follow. All other streams are unaffected. */
  parked_streams: ParkedStreams;
}

/**
 * An incomplete stream and its remaining revisions; null when none were found. All other streams
 * are unaffected.
 */
export interface DamagedStream {
  stream: string;
  first_revision: number | null;
  last_revision: number | null;
}

/** The health of retention, which erases sessions older than the limit of their account. */
export interface RetentionHealth {
  /**
   * `waiting` for the next sweep; `standing_by` while another process sweeps; `refusing` while the
   * clock is implausible; `failing` after an incomplete sweep.
   */
  state: 'waiting' | 'sweeping' | 'standing_by' | 'refusing' | 'failing';
  /**
   * Sessions left by the last sweep of this process, and how many of them are held or failed; null
   * before the first sweep.
   */
  due: number | null;
  held: number | null;
  failed: number | null;
  /** Number of sessions that this process has erased since its start. */
  erased: number;
  /** Why retention refuses or fails, or why the last failed session did. */
  reason?: string | undefined;
}

/** The health of webhook delivery. */
export interface WebhooksHealth {
  /** `standing_by` while another process delivers. */
  state: 'standing_by' | 'active';
  /** Number of enabled webhooks of all accounts; null when only another process knows it. */
  enabled: number | null;
  /** Number of enabled webhooks whose receivers fail. */
  failing: number | null;
  /** A sentence that says why nothing can be delivered; absent while delivery works. */
  reason?: string | undefined;
}

/** Folders on disks with little free space. */
export interface DiskHealth {
  /** `full` while appends of clients are refused. */
  state: 'low' | 'full';
  folders: { folder: string; free_bytes: number }[];
}

/** The health of replays. */
export interface ReplaysHealth {
  /** `standing_by` while another process runs them. */
  state: 'standing_by' | 'active';
  /** Number of running replays of all accounts; null when only another process knows it. */
  running: number | null;
  /** A sentence that says why no replay, or one of them, can run; absent while all can. */
  reason?: string | undefined;
}

/**
 * The readiness of a process and details for its operator. Parts that the process does not run are
 * absent.
 */
export interface Health {
  ready: boolean;
  /** A sentence that says why the process is not ready. */
  reason?: string;
  projection?: ProjectionHealth;
  /** Runs with a slot, and runs that wait for a slot or for another run of their session. */
  runs_in_flight?: number;
  runs_waiting?: number;
  /** The servers whose tools the process offers. */
  tool_servers?: GroupHealth[];
  /** Model providers that are not called for now because their last calls failed, if any. */
  open_circuits?: string[];
  /**
   * Damaged streams found by this process. A stream is removed when a read finds it complete again.
   */
  damaged_streams?: DamagedStream[];
  /** Number of damaged streams. Only the latest ones are listed. */
  damaged_count?: number;
  /** Present once this process has found rows of the read models that differ from the log. */
  damaged_rows?: { count: number; rows: DamagedRow[]; reason: string };
  /** Present when the process runs a projector that shares its work with other instances. */
  projector?: ProjectorHealth;
  /** Present when the process runs the relay. */
  relay?: RelayHealth;
  transparency_log?: TransparencyLogHealth;
  /** Present while destroyed text keys may have been restored. */
  text_keys?: { reason: string };
  /** Present while unfinished erasures cannot be completed. */
  erasures?: { count: number; reason: string };
  /** Present when the process delivers webhooks. */
  webhooks?: WebhooksHealth;
  /** Present when the process runs replays. */
  replays?: ReplaysHealth;
  /** Present while little disk space is free. */
  disk?: DiskHealth;
  /** Present when the process runs retention. */
  retention?: RetentionHealth;
}
