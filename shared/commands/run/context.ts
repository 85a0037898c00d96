import type { ChatSettings } from '../../domain/session/chat.ts';
import type { SessionState } from '../../domain/session/decider.ts';
import type { Turn } from '../../domain/session/prompt.ts';
import type { StreamHead } from '../../eventlog/append.ts';
import type { DamagedStreams } from '../../eventlog/damagedStreams.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import type { Actor, CommandContext } from '../context.ts';
import type { AgentCatalogue } from '../createAgent.ts';
import type { TokenBudget } from './contextWindow.ts';
import type { LeftOpen } from '../recovery/leftOpen.ts';
import type { SessionMemory } from './recallSession.ts';
import type { RunsInFlight } from './runsInFlight.ts';
import type { SessionQueue } from './sessionQueue.ts';

export interface RunLimits {
  /** Of a whole run: model calls, retries and tools. */
  timeoutMs: number;
  /** How long a run waits for another one of its session. */
  waitMs: number;
}

export interface RunContext extends CommandContext, AgentCatalogue {
  /** What a run reads before it begins: where the read models are elsewhere, it outlasts their being away. */
  known: Pick<ReadModels, 'findApiKey' | 'findAgent'>;
  queue: SessionQueue;
  inFlight: RunsInFlight;
  budget: TokenBudget;
  memory: SessionMemory;
  limits: RunLimits;
  /** Streams that this process found not to be whole. */
  damaged: DamagedStreams;
  /** Sessions with a turn that may be open in the store although nobody runs it: the store was away when it began or ended. */
  leftOpen: LeftOpen;
  /** Names this instance as the owner of its turns. */
  instanceId: string;
  /** True when nobody runs the turns of that owner any more, given that this process does not: its own, and those of the dead. */
  isGone: (owner: string) => boolean;
}

/** A turn that has begun: what the rest of the run works on. */
export interface OpenRun {
  actor: Actor;
  session_id: string;
  turn: number;
  state: SessionState;
  model: string;
  tool: string | undefined;
  instruction: string;
  settings: ChatSettings;
  history: Turn[];
  input: string;
  /** Id of the turn_started event: the cause of all that follows. */
  causation_id: string;
  /** Moves with every append of the run. */
  head: StreamHead;
  startedAt: number;
}
