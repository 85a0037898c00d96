import type { ReadAudit } from '../../shared/audit/foldedReads.ts';
import type { FoldedRead } from '../../shared/audit/foldedReadKinds.ts';
import type { ErasureContext } from '../../shared/erasure/retention/requireErasable.ts';
import type { RunContext } from '../../shared/runs/context.ts';
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
  /** True where the metrics have a port of their own. */
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

/** The dependencies of the API. */
export type ApiContext = RunContext &
  ProcessContext &
  TransparencyLogContext &
  FeedContext &
  Pick<ErasureContext, 'judge'> &
  Pick<ReplayContext, 'replayStarts'> & {
    webhooks: ServedWebhooks;
    differ: TextDiffer;
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
  readAudit: ReadAudit;
  rejectLogin: LoginThrottle;
};
