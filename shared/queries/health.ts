import type { ParkedStream } from '../ports/readModels.ts';

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
}
