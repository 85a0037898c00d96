import type { Position } from '../ports/eventStore.ts';
import type { ParkedStream } from '../ports/readModels.ts';

/** What the relay tells an operator. */
export interface RelayHealth {
  /** `standing_by` while another relay publishes; `retrying` after a failure, which the log explains. */
  state: 'starting' | 'relaying' | 'standing_by' | 'retrying';
  /** Everything up to here is published. */
  position: Position | undefined;
  /** The age of the oldest event that is not published; null while another relay publishes, which knows it. */
  lag_ms: number | null;
}

/** Whether the service can answer, and what it would tell an operator. */
export interface Health {
  ready: boolean;
  /** One sentence on why it is not ready. */
  reason?: string;
  projection: {
    /** True once the read models have shown everything there was. */
    caught_up: boolean;
    /** Streams that a projection could not follow; everything else goes on. */
    parked_streams: ParkedStream[];
  };
  runs_in_flight: number;
  /** Where events are relayed. */
  relay?: RelayHealth;
}
