import type { LRUCache } from 'lru-cache';
import type { AccountLimits } from '../accounts/events.ts';
import type { ChatSettings } from '../sessions/turns/chat.ts';
import type { RunningSession } from '../sessions/commands.ts';
import type { TurnContext } from '../sessions/turns/promptParts.ts';
import type { Summary, Turn } from '../sessions/turns/prompt.ts';
import type { StreamHead } from '../eventlog/append.ts';
import type { KnownRows } from '../projections/cachedRows.ts';
import type { PermitPool } from '../lib/concurrency/capacity.ts';
import type { Position } from '../ports/eventStore.ts';
import type { FairSemaphore } from '../lib/concurrency/fairSemaphore.ts';
import type { RateLimiter } from '../ports/rateLimiter.ts';
import type { AgentCatalogue } from '../agents/catalogue.ts';
import type { CommandContext } from '../commandHandling/context.ts';
import type { OpenTurnQueue } from './recovery/openTurnQueue.ts';
import type { AdmissionControl } from './queueing/admissionControl.ts';
import type { TokenCounter } from '../ports/tokenCounter.ts';
import type { LiveTurns, TurnPublisher } from './live/liveTurns.ts';
import type { MirroredTurns } from './live/mirrorTurns.ts';
import type { RunRequest } from './runRequest.ts';
import type { RecordedResult } from './runResult.ts';
import type { SessionCache } from './queueing/sessionCache.ts';
import type { RunsInFlight } from './queueing/runsInFlight.ts';
import type { SessionQueue } from './queueing/sessionQueue.ts';
import type { TurnWatch } from './queueing/turnWatch.ts';

interface RunLimits {
  /** Of a whole run: model calls, retries and tools. */
  timeoutMs: number;
  /** How long a run waits for another one of its session, and for a place. */
  waitMs: number;
  /** Of each API key, on all processes together. */
  requestsPerSecond: number;
}

/** What this process knows of the sessions that it runs. */
export interface RunState {
  admission: AdmissionControl;
  /** The line of those who read a session. */
  sessionReads: FairSemaphore;
  sessionQueue: SessionQueue;
  runsInFlight: RunsInFlight;
  liveTurns: LiveTurns;
  /** Turns that other processes run. */
  mirroredTurns: MirroredTurns;
  turnWatch: TurnWatch;
  /** Of requests that wait for the end of a turn. */
  turnWaits: PermitPool;
  sessionCache: SessionCache;
  /** Sessions whose older turns could not be summed up, and at which turn that was. */
  failedCompactions: LRUCache<string, number>;
  /**
   * Those whose turn may be open though nobody runs it: the store was away when it began or ended.
   */
  openTurnQueue: OpenTurnQueue;
  /** By claimed request: the try that is about to begin its turn; settles then. */
  startingTurns: Map<string, Promise<void>>;
  /** By turn: the look for its end, which all tries share that found it open. */
  turnEndLookups: Map<string, Promise<RecordedResult>>;
}

/** This process as the owner of turns. */
export interface Instance {
  id: string;
  /** True for an owner whose turns nobody runs unless this process does: itself, and the dead. */
  isGone: (owner: string) => boolean;
  /**
   * True for a turn of an owner that is not known to be gone, which is so late that nobody can be
   * running it.
   */
  isOverdue: (turn: { owner: string; deadline: string }) => boolean;
}

export interface TokenBudget {
  counter: TokenCounter;
  /** Counted tokens of ended turns, by session and turn: they never change. */
  turnTokens: LRUCache<string, number>;
}

export interface RunContext extends CommandContext {
  /**
   * What a run reads before it begins: where the read models are elsewhere, it outlasts their being
   * away.
   */
  cachedRows: KnownRows;
  /** What was set for an account, as it was half a second ago at the earliest. */
  accountLimits: (accountId: string) => Promise<AccountLimits>;
  rateLimiter: RateLimiter;
  catalogue: AgentCatalogue;
  runState: RunState;
  budget: TokenBudget;
  limits: RunLimits;
  /** Calls back when the client leaves before it is answered; returns what ends that. */
  onClientDisconnect?: (giveUp: (reason: Error) => void) => () => void;
  instance: Instance;
}

/** The members of RunContext and RunState that a function uses. */
export type RunSlice<Member extends keyof RunContext, State extends keyof RunState> = Pick<
  RunContext,
  Member
> & { runState: Pick<RunState, State> };

/** What calling models and counting tokens needs. */
export type ModelContext = Pick<RunContext, 'catalogue' | 'budget'>;

/** What loading a session needs. */
export type SessionReadContext = RunSlice<
  'store' | 'damaged' | 'readModels' | 'budget',
  'sessionCache' | 'sessionReads'
>;

/** A turn that has begun: what the rest of the run works on. */
export interface OpenRun {
  request: RunRequest;
  /** The session as the run sees it, until the turn ends. */
  state: RunningSession;
  settings: ChatSettings;
  /** The turns to show the model before this one. */
  history: Turn[];
  /** What is shown for older ones. */
  summary: Summary | undefined;
  /** How much of the session that is. */
  context: TurnContext;
  /** This one, as far as it has come. */
  turn: Turn;
  /** Id of the turn_started event: the cause of all that follows. */
  causation_id: string;
  /** Where that event stands in the log. */
  position: Position;
  /** Takes room for so many bytes beside its prompt; false where there is none. */
  reserveBytes: (bytes: number) => boolean;
  /** Told of what the turn puts out, as it comes. */
  publisher: TurnPublisher;
  /** Moves with every append of the run. */
  head: StreamHead;
  /** When it began, in milliseconds of `performance.now()`. */
  startedAt: number;
}
