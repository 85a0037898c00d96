import type { Position } from '../ports/eventStore.ts';
import type { ParkedKeys } from '../ports/publisher.ts';
import type { ParkedStream } from '../ports/readModels.ts';

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
}

/** How the read models are. */
export interface ProjectionHealth {
  /** True once the read models have shown everything there was. */
  caught_up: boolean;
  /**
   * Half a sentence on why they are being rebuilt, which those that answer meanwhile may be
   * missing; undefined where they can be trusted.
   */
  healing: string | undefined;
  /** Streams that a projection could not follow; everything else goes on. */
  parked_streams: ParkedStream[];
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

/**
 * Whether a process can do its work, and what it would tell an operator. What is not its own is
 * absent.
 */
export interface Health {
  ready: boolean;
  /** One sentence on why it is not ready. */
  reason?: string;
  projection?: ProjectionHealth;
  runs_in_flight?: number;
  /** Those that this process met; each leaves the list when it is read whole again. */
  damaged_streams?: DamagedStream[];
  /** Where it projects, in turn with others. */
  projector?: ProjectorHealth;
  /** Where events are relayed. */
  relay?: RelayHealth;
}
