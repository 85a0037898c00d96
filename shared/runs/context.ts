import type { LRUCache } from 'lru-cache';
import type { AcquireUserPermit } from '../chatTokens/userPermits.ts';
import type { AccountLimits } from '../accounts/events.ts';
import type { ChatSettings } from '../sessions/turns/chat.ts';
import type { RunningSession } from '../sessions/decider.ts';
import type { TurnContext } from '../sessions/turns/promptParts.ts';
import type { Summary, Turn } from '../sessions/turns/prompt.ts';
import type { StreamHead } from '../eventlog/append.ts';
import type { KnownRows } from '../projections/cacheRowsForOutage.ts';
import type { PermitPool } from '../lib/concurrency/capacity.ts';
import type { Position } from '../ports/eventStore.ts';
import type { MemoryLedger } from '../lib/memory/ledger.ts';
import type { AgentCatalogue } from '../agents/catalogue.ts';
import type { CommandContext } from '../commandHandling/context.ts';
import type { OpenTurnQueue } from './recovery/openTurnQueue.ts';
import type { AdmissionControl } from './queueing/admissionControl.ts';
import type { TokenCounter } from '../ports/tokenCounter.ts';
import type { LiveTurns, TurnPublisher } from './live/liveTurns.ts';
import type { MirroredTurns } from './live/mirrorTurns.ts';
import type { RunRequest } from './runRequest.ts';
import type { HeldAnswers } from './model/heldAnswers.ts';
import type { RecordedResult } from './runResult.ts';
import type { SessionCache } from './queueing/sessionCache.ts';
import type { RunsInFlight } from './queueing/runsInFlight.ts';
import type { SessionQueue } from './queueing/sessionQueue.ts';
import type { TurnWatch } from './queueing/turnWatch.ts';

interface RunLimits {
  /** Time limit of a whole run: model calls, retries and tools. */
  timeoutMs: number;
  /** How long a run waits for other runs of its session, and for capacity. */
  waitMs: number;
}

/** The state of this process's runs. */
export interface RunState {
  admission: AdmissionControl;
  sessionQueue: SessionQueue;
  runsInFlight: RunsInFlight;
  liveTurns: LiveTurns;
  /** Turns of other processes that are followed here. */
  mirroredTurns: MirroredTurns;
  turnWatch: TurnWatch;
  /** Permits for the runs of end users with chat tokens. */
  acquireUserRun: AcquireUserPermit;
  /** Permits for requests that wait for the end of a turn. */
  turnWaits: PermitPool;
  sessionCache: SessionCache;
  /** Sessions with a failed compaction, and the number of their last turn at that time. */
  failedCompactions: LRUCache<string, number>;
  /**
   * Sessions with a turn that may be open without a run, because the store was unavailable when it
   * started or ended.
   */
  openTurnQueue: OpenTurnQueue;
  /**
   * For each claimed request, the attempt that is starting its turn. Settles when the turn has
   * started.
   */
  startingTurns: Map<string, Promise<void>>;
  /** For each turn, the wait for its end that all attempts of its request share. */
  turnEndLookups: Map<string, Promise<RecordedResult>>;
  /** By session and request: the revision up to which the session holds no turn of the request. */
  turnSearches: LRUCache<string, { scannedTo: number }>;
}

/** This process as an owner of turns. */
export interface Instance {
  id: string;
  /**
   * True for an owner that runs no turn outside this process: this process itself, or a dead
   * instance.
   */
  isGone: (owner: string) => boolean;
  /** True for a turn so long past its deadline that no process can still be running it. */
  isOverdue: (turn: { owner: string; deadline: string }) => boolean;
}

export interface TokenBudget {
  counter: TokenCounter;
  /** Token counts of ended turns by session and turn. They never change. */
  turnTokens: LRUCache<string, number>;
}

export interface RunContext extends CommandContext {
  /**
   * The rows that a run reads before it starts. They remain available during an outage of remote
   * read models.
   */
  cachedRows: KnownRows;
  /** The limits of an account, at most half a second old. */
  accountLimits: (accountId: string) => Promise<AccountLimits>;
  memory: MemoryLedger;
  catalogue: AgentCatalogue;
  runState: RunState;
  budget: TokenBudget;
  limits: RunLimits;
  /**
   * Calls back when the client disconnects before its response. Returns a function that
   * unsubscribes.
   */
  onClientDisconnect?: (onDisconnect: (reason: Error) => void) => () => void;
  instance: Instance;
}

/** The members of RunContext and RunState that a function uses. */
export type RunSlice<Member extends keyof RunContext, State extends keyof RunState> = Pick<
  RunContext,
  Member
> & { runState: Pick<RunState, State> };

/** Dependencies of model calls and token counts. */
export type ModelContext = Pick<RunContext, 'catalogue' | 'budget'>;

/** Dependencies of loading a session. */
export type SessionReadContext = RunSlice<
  'store' | 'damaged' | 'readModels' | 'budget' | 'memory',
  'sessionCache'
>;

/** A started turn, as its run sees it. */
export interface OpenRun {
  request: RunRequest;
  /** The session as the run sees it, until the turn ends. */
  state: RunningSession;
  settings: ChatSettings;
  /** The earlier turns that the prompt shows. */
  history: Turn[];
  /** The summary that stands for older turns. */
  summary: Summary | undefined;
  /** How much of the session the prompt shows. */
  context: TurnContext;
  /** The current turn so far. */
  turn: Turn;
  /** Id of the turn_started event, which is the cause of all later events of the turn. */
  causation_id: string;
  /** Position of that event in the log. */
  position: Position;
  /** Reserves bytes in addition to the prompt; false if they are not available. */
  reserveBytes: (bytes: number) => boolean;
  /** The memory of the answers that are not recorded yet. */
  held: HeldAnswers;
  /** Receives the output of the turn as it arrives. */
  publisher: TurnPublisher;
  /** The last event of the session's stream; advances with each append of the run. */
  head: StreamHead;
  /** When the turn started, in milliseconds of `performance.now()`. */
  startedAt: number;
  /** When the append began with which the store became unavailable; absent while it is available. */
  unavailableSince?: number | undefined;
}
