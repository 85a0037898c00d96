import type { ErasureContext } from '../../shared/erasure/retention/requireErasable.ts';
import type { RunContext } from '../../shared/runs/context.ts';
import type { TextDiffer } from '../../shared/replays/comparison/textDiffer.ts';
import type { TileReader } from '../../shared/transparency/tileStore.ts';
import type { PermitPool } from '../../shared/lib/concurrency/capacity.ts';
import type { Health } from '../../shared/health/health.ts';
import type { AccountFeed } from '../../shared/feed/accountFeed.ts';
import type { ServedWebhooks } from '../../shared/webhooks/queries.ts';
import type { ErrorPresenter } from './http/errors/errorPresenter.ts';
import type { ResponseMemoryPool } from './http/responses/responseMemory.ts';

/**
 * `starting` until the read models are up to date and what a crash left open is closed; `draining`
 * from the signal on, while load balancers turn away and requests are served as before; then
 * `stopping`.
 */
export type Availability = 'starting' | 'up' | 'draining' | 'stopping';

/** What every process works with that answers over HTTP. */
export interface ProcessContext extends Pick<RunContext, 'ids' | 'logger'> {
  availability: () => Availability;
  /** Aborts when the process stops: what only waits is to end. */
  stopping: AbortSignal;
  /** Origins whose pages may call the API, separated by commas; none when undefined. */
  corsOrigins: string | undefined;
  /** Errors: `store_unavailable`. */
  health: () => Promise<Health>;
}

/** The transparency log as the API serves it. */
export interface TransparencyLogContext {
  tiles: TileReader;
  /** Whether it is read without an API key. */
  logPublic: boolean;
}

/** The events of accounts as the API serves them. */
export interface FeedContext {
  feed: AccountFeed;
  /** What clients that follow take up. */
  followers: PermitPool;
  /** The `source` of the CloudEvents. */
  eventSource: string;
}

/** What the API works with. */
export type ApiContext = RunContext &
  ProcessContext &
  TransparencyLogContext &
  FeedContext &
  Pick<ErasureContext, 'judge'> & { webhooks: ServedWebhooks; differ: TextDiffer };

/** What an operation of the API works with. */
export type RouteContext = ApiContext & {
  errors: ErrorPresenter;
  responseMemory: ResponseMemoryPool;
  /** What streams of events take up while they are open. */
  openStreams: PermitPool;
};
