import type { ErasureContext } from '../../shared/erasure/retention/requireErasable.ts';
import type { RunContext } from '../../shared/runs/context.ts';
import type { AccountFeed } from '../../shared/feed/accountFeed.ts';
import type { PermitPool } from '../../shared/lib/concurrency/capacity.ts';
import type { TextDiffer } from '../../shared/replays/comparison/textDiffer.ts';
import type { TileReader } from '../../shared/transparency/tileStore.ts';
import type { ServedWebhooks } from '../../shared/webhooks/queries.ts';
import type { Health } from '../../shared/health/health.ts';
import type { PeriodicTask } from './upkeep/periodicTask.ts';

/**
 * A part of a running process. It leaves out what it has nothing to do or to say for: an event
 * store, which tells only of its trouble, is one as it is.
 */
export interface ProcessPart {
  /**
   * Waits until the part can do its work as if no process had ever ended. Errors: the signal's
   * reason.
   */
  prepare?(signal: AbortSignal): Promise<void>;
  /** What the part tells an operator. Errors: `store_unavailable`. */
  health?(): Promise<Partial<Health>>;
  /** One sentence on why the part can't work now; undefined where it can. Known at once. */
  trouble?(): string | undefined;
  /** One sentence on why the read models can't be trusted; undefined where they can. */
  distrustReason?(): string | undefined;
  /** Starts what the part does again and again while the process serves. */
  upkeep?(): PeriodicTask;
}

/**
 * What one process runs, whichever services it was started with. Disposing of it closes every part.
 */
export interface ProcessParts extends AsyncDisposable {
  /** What the API works with; undefined where it is not among the services. */
  api:
    | (RunContext & {
        tiles: TileReader;
        feed: AccountFeed;
        followers: PermitPool;
        webhooks: ServedWebhooks;
        differ: TextDiffer;
      } & Required<Pick<ErasureContext, 'judge'>>)
    | undefined;
  /** The folder of log or read models, absolute; undefined where the process keeps nothing. */
  dataFolder: string | undefined;
  /** In the order in which they are prepared. */
  parts: readonly ProcessPart[];
}
