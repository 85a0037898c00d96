import type { GroupHealth } from '../ports/toolbox.ts';
import type { Position } from '../ports/eventStore.ts';
import type { ParkedKeys } from '../publicEvents/publisher.ts';
import type { ParkedStreams, ProjectorLag } from '../ports/readModels.ts';

/** What the relay tells an operator. */
export interface RelayHealth {
  /**
   * `standing_by` while another relay publishes; `retrying` after a failure, until it has got on.
   */
  state: 'starting' | 'relaying' | 'standing_by' | 'retrying';
  /** Everything up to here is published. */
  position: Position | undefined;
  /** The age of the oldest event not published; null while another relay publishes. */
  lag_ms: number | null;
  /** Why it can't publish; always there while it is `retrying`. */
  reason?: string | undefined;
  /** Keys none of whose events are published; absent without any. */
  parked?: ParkedKeys | undefined;
}

/** What a projector that takes turns with others tells an operator. */
export interface ProjectorHealth {
  /** `standing_by` while another projector is the active one, or none can be. */
  state: 'standing_by' | 'active';
  /** The events still to apply, and the age of the oldest; null where it doesn't know. */
  lag_events: number | null;
  lag_ms: number | null;
  /** One sentence on why turns can't be indexed; absent while they can. */
  search_reason?: string;
}

/** What the prover tells each time that something of it changes. Plain data, for a thread to send. */
export interface ProverReport {
  state: TransparencyLogHealth['state'];
  /** Leaves under the newest checkpoint; undefined where that is not known now. */
  size?: number;
  /** Everything up to here is covered by it. */
  position?: Position | undefined;
  /** When it was signed, in milliseconds since 1970. */
  signedAt?: number | undefined;
  /** One sentence on why it does not go on. */
  trouble?: string;
}

/** How the witnesses of the transparency log are. */
export interface WitnessesHealth {
  /** How many cosignatures a checkpoint is to have. */
  wanted: number;
  /** Witnesses that cosigned the checkpoint that is served. */
  reached: number;
  /** The names of the others. */
  missing: string[];
  /** One sentence, where fewer than wanted have for longer than LIMITS.witness.shortMs. */
  reason?: string;
}

/** What a prover tells an operator; nulls where another process knows it, or nobody yet. */
export interface TransparencyLogHealth {
  /** `standing_by` while another process grows the transparency log, or none can. */
  state: 'standing_by' | 'active';
  /** Leaves under the newest checkpoint. */
  size: number | null;
  /** The age of the oldest event that no checkpoint covers. */
  lag_ms: number | null;
  /** When the newest checkpoint was signed, if this process has. */
  signed_at: string | null;
  /** One sentence on why it is not carried on; absent while it is. */
  trouble?: string;
  /** Where some are asked, and this process asks them. */
  witnesses?: WitnessesHealth;
}

/** How the read models are. */
export interface ProjectionHealth {
  /**
   * True once the read models have shown everything there was; false again while they don't follow
   * the log.
   */
  caught_up: boolean;
  /** How far they are behind the log, where another process knows it. */
  lag?: ProjectorLag;
  /** One sentence on why they don't follow the log; absent while they do. */
  late?: string;
  /** One sentence on why they can't be trusted; undefined where they can. */
  doubt: string | undefined;
  /** Turns that are shown and not found by their words yet, at most LIMITS.search.countedTurns. */
  unindexed_turns?: number;
  /** One sentence on why turns are not found by their words; absent while they are. */
  search_reason?: string;
  /** True while words of erased turns, as their index has them, are still to be taken out of its files. */
  erases_words?: boolean;
  /** Streams that a projection could not follow; everything else goes on. */
  parked_streams: ParkedStreams;
}

/**
 * A stream that is not whole, and what is left of it; nulls when nothing was found. Everything else
 * goes on.
 */
export interface DamagedStream {
  stream: string;
  first_revision: number | null;
  last_revision: number | null;
}

/** How the erasing of sessions goes that are past the maximum of their account's retention. */
export interface RetentionHealth {
  /**
   * `waiting` for the next sweep; `standing_by` while another process sweeps; `refusing` while the
   * clock is not believed; `failing` after a sweep that could not end.
   */
  state: 'waiting' | 'sweeping' | 'standing_by' | 'refusing' | 'failing';
  /** What this process's last sweep left there, and how many of that are held or failed; null before the first. */
  due: number | null;
  held: number | null;
  failed: number | null;
  /** Sessions that this process has erased since its start. */
  erased: number;
  /** Why it refuses or fails, or why the last one of the failed did. */
  reason?: string | undefined;
}

/** How the sending to webhooks goes. */
export interface WebhooksHealth {
  /** `standing_by` while another process sends. */
  state: 'standing_by' | 'active';
  /** Webhooks that events are sent to, of all accounts; null where another process knows it. */
  enabled: number | null;
  /** Those of them whose receivers fail. */
  failing: number | null;
  /** One sentence on why nothing can be sent; absent while that goes on. */
  reason?: string | undefined;
}

/** How the running of replays goes. */
export interface ReplaysHealth {
  /** `standing_by` while another process runs them. */
  state: 'standing_by' | 'active';
  /** Replays that run, of all accounts; null where another process knows it. */
  running: number | null;
  /** One sentence on why none can be run, or one of them not; absent while that goes on. */
  reason?: string | undefined;
}

/**
 * Whether a process can do its work, and what it would tell an operator. What is not its own is
 * absent.
 */
export interface Health {
  ready: boolean;
  /** One sentence on why it is not ready. */
  reason?: string;
  projection?: ProjectionHealth;
  /** Those that have a place; those that wait for one, or for another run of their session. */
  runs_in_flight?: number;
  runs_waiting?: number;
  /** The servers whose tools it offers. */
  tool_servers?: GroupHealth[];
  /** Model providers that nothing is sent to now, where there are any. */
  open_circuits?: string[];
  /** Those that this process met; each leaves the list when it is read whole again. */
  damaged_streams?: DamagedStream[];
  /** How many they are; the last ones are listed. */
  damaged_count?: number;
  /** Where it projects, in turn with others. */
  projector?: ProjectorHealth;
  /** Where events are relayed. */
  relay?: RelayHealth;
  /** Where the transparency log is grown. */
  transparency_log?: TransparencyLogHealth;
  /** Present while keys of texts that were destroyed may be back. */
  text_keys?: { reason: string };
  /** Present while erasures that were begun can't be finished. */
  erasures?: { count: number; reason: string };
  /** Where events are sent to webhooks. */
  webhooks?: WebhooksHealth;
  /** Where replays are run. */
  replays?: ReplaysHealth;
  /** Where sessions are erased whose time is over. */
  retention?: RetentionHealth;
}
