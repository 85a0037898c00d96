import type { ErasureContext } from '../../shared/erasure/retention/requireErasable.ts';
import type { ServedRuns } from '../api/context.ts';
import type { ConsoleBuild } from '../../shared/ports/consoleBuild.ts';
import type { AccountFeed } from '../../shared/feed/accountFeed.ts';
import type { PermitPool } from '../../shared/lib/concurrency/capacity.ts';
import type { MemoryLedger } from '../../shared/lib/memory/ledger.ts';
import type { TileReader } from '../../shared/transparency/tileStore.ts';
import type { ServedWebhooks } from '../../shared/webhooks/queries.ts';
import type { Metrics } from '../../shared/health/metrics.ts';
import type { Health } from '../../shared/health/health.ts';
import type { PeriodicTask } from './upkeep/periodicTask.ts';

export type { ServedRuns };

/** A part of a running process. Every member is optional: an event store is a part as it is. */
export interface ProcessPart {
  /** Waits until the part can work as if no process had stopped. Rejects with the abort reason. */
  prepare?(signal: AbortSignal): Promise<void>;
  /** Waits, for a short time at most, for what the part adds to a new log. Called after `prepare`. */
  settle?(): Promise<void>;
  /** The health of the part. Rejects with `store_unavailable`. */
  health?(): Promise<Partial<Health>>;
  /** One sentence on why the part can't work now; undefined if it can. Answers without I/O. */
  trouble?(): string | undefined;
  /** One sentence on why the read models can't be trusted; undefined if they can. */
  distrustReason?(): string | undefined;
  /** Starts the periodic work of the part, which lasts while the process serves. */
  upkeep?(): PeriodicTask;
}

/** The parts of one process, for any choice of services. Disposing of it closes every part. */
export interface ProcessParts extends AsyncDisposable {
  /** The context of the API; undefined if this process does not serve it. */
  api:
    | (ServedRuns & {
        tiles: TileReader;
        feed: AccountFeed;
        followers: PermitPool;
        webhooks: ServedWebhooks;
      } & Required<Pick<ErasureContext, 'judge'>>)
    | undefined;
  /** The build of the console; undefined if it is off, or if this process does not serve the API. */
  console: ConsoleBuild | undefined;
  memory: MemoryLedger;
  /** The absolute path of the data folder; undefined if the process has none. */
  dataFolder: string | undefined;
  metrics: Metrics;
  /** In the order in which they are prepared. */
  parts: readonly ProcessPart[];
}
