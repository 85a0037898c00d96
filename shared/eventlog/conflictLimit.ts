import { storeUnavailable } from '../errors.ts';
import { foundDamaged, type StreamSource } from './readWhole.ts';

/**
 * A stream that refuses an append this often, for this long, after the revision that it shows as its last,
 * shows too little.
 */
const STUCK_TIMES = 8;
const STUCK_MS = 2_000;
/** However the stream moves: others who write without a pause leave no place for this writer. */
const MOST_CONFLICTS = 250;

export interface ConflictLimit {
  /** To be called with each conflict. Errors: `stream_damaged` (noted), `store_unavailable` when it is one too many. */
  lost(revision: number): Promise<void>;
}

/** Bounds one loop of load → append → conflict on a stream. A caller that waits for others bounds its time as well. */
export function createConflictLimit(source: StreamSource, stream: string): ConflictLimit {
  let last: { revision: number; since: number; times: number } | undefined;
  let conflicts = 0;
  return {
    async lost(revision) {
      conflicts += 1;
      if (last?.revision !== revision) last = { revision, since: performance.now(), times: 0 };
      last.times += 1;
      if (last.times >= STUCK_TIMES && performance.now() - last.since >= STUCK_MS) {
        throw await foundDamaged(source, stream, {
          reason: `something that is not shown follows revision ${revision}`,
          revision: revision + 1,
        });
      }
      if (conflicts >= MOST_CONFLICTS)
        throw storeUnavailable(`Others write to the stream ${stream} without a pause.`);
    },
  };
}
