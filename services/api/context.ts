import type { ReadAudit } from '../../shared/audit/foldedReads.ts';
import type { FoldedRead } from '../../shared/audit/foldedReadKinds.ts';
import type { ErasureContext } from '../../shared/erasure/retention/requireErasable.ts';
import type { RunContext } from '../../shared/runs/context.ts';
import type { RateLimiter } from '../../shared/ports/rateLimiter.ts';
import type { StorageQuotas } from '../../shared/storage/quotas.ts';
import type { ReplayContext } from '../../shared/replays/commands.ts';
import type { TextDiffer } from '../../shared/replays/comparison/textDiffer.ts';
import type { TileReader } from '../../shared/transparency/tileStore.ts';
import type { PermitPool } from '../../shared/lib/concurrency/capacity.ts';
import type { Metrics } from '../../shared/health/metrics.ts';
import type { Health } from '../../shared/health/health.ts';
import type { AccountFeed } from '../../shared/feed/accountFeed.ts';
import type { ServedWebhooks } from '../../shared/webhooks/queries.ts';
import type { ConsoleBuild } from '../../shared/ports/consoleBuild.ts';
import type { SignInCode } from './console/signInCode.ts';
import type { LoginThrottle } from './http/access/loginThrottle.ts';
import type { ErrorPresenter } from './http/errors/errorPresenter.ts';
import type { ResponseMemoryPool } from './http/responses/responseMemory.ts';

/**
 * `starting` until the read models are up to date and the turns that a crash left open are closed;
 * `draining` after the stop signal, while requests are still served and load balancers move away;
 * then `stopping`.
 */
export type Availability = 'starting' | 'up' | 'draining' | 'stopping';

/** The dependencies of every process that serves HTTP. */
export interface ProcessContext extends Pick<RunContext, 'ids' | 'logger' | 'memory'> {
  availability: () => Availability;
  /** Aborts when the process stops, to end requests that only wait. */
  stopping: AbortSignal;
  /** Origins whose pages may call the API, separated by commas; none when undefined. */
  corsOrigins: string | undefined;
  health: () => Promise<Health>;
  metrics: Metrics;
  /** The version of the package. */
  version: string;
  /** True where the metrics have their own port. */
  hasMetricsPort: boolean;
}

/** The transparency log as the API serves it. */
export interface TransparencyLogContext {
  tiles: TileReader;
  /** True where reading it needs no API key. */
  logPublic: boolean;
}

/** The events of accounts as the API serves them. */
interface FeedContext {
  feed: AccountFeed;
  /** Permits of the clients that follow the feed. */
  followers: PermitPool;
  /** The `source` of the CloudEvents. */
  eventSource: string;
}

/** The console as the API serves it. */
export interface ConsoleContext extends Pick<ConsoleBuild, 'folder' | 'visit'> {
  signInCode: SignInCode;
}

interface RequestLimits {
  /** Requests per second of an API key, across all processes. */
  requestsPerSecond: number;
  /** How long a request waits for the event store in all, in milliseconds. */
  storeWaitMs: number;
}

/** The runs that the API serves, with the limits of its requests. */
export type ServedRuns = RunContext &
  Pick<ReplayContext, 'replayStarts'> & {
    differ: TextDiffer;
    limits: RequestLimits;
    /** The storage quotas of accounts. `store` enforces them. */
    quotas: Pick<StorageQuotas, 'useOf'>;
    rateLimiter: RateLimiter;
  };

/** The dependencies of the API. */
export type ApiContext = ServedRuns &
  ProcessContext &
  TransparencyLogContext &
  FeedContext &
  Pick<ErasureContext, 'judge'> & {
    webhooks: ServedWebhooks;
    /** Undefined if the console is off. */
    console: ConsoleContext | undefined;
    /** Reads that are recorded in the audit. */
    auditedReads: ReadonlySet<FoldedRead>;
  };

/** The dependencies of a route. */
export type RouteContext = ApiContext & {
  errors: ErrorPresenter;
  responseMemory: ResponseMemoryPool;
  /** Permits of open event streams. */
  openStreams: PermitPool;
  /** Attempts that wait for an earlier one with the same `Idempotency-Key`. */
  waitingAttempts: PermitPool;
  readAudit: ReadAudit;
  rejectLogin: LoginThrottle;
};
