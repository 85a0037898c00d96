import { isStillValid, unauthorizedError } from '../accounts/authenticate.ts';
import { createBackoff } from '../lib/time/backoff.ts';
import { isRejection } from '../domain/rejection.ts';
import { isTurnlogError, isLogUnavailable, TurnlogError } from '../lib/errors/turnlogError.ts';
import { createConflictLimit } from '../eventlog/conflictLimit.ts';
import { createReadReservation } from '../eventlog/reading/readMemory.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { sleep } from '../lib/time/sleep.ts';
import { LIMITS } from '../limits.ts';
import { renewWaitBudget } from '../lib/time/waitBudget.ts';
import { interruptIfOrphaned, type RecoveryContext } from './recovery/interruptTurn.ts';
import type { RunPermit } from './queueing/admissionControl.ts';
import type { OpenRun, RunContext, RunSlice } from './context.ts';
import { promptBytes, promptMemory, planPromptBudget } from './model/contextWindow.ts';
import { createHeldAnswers } from './model/heldAnswers.ts';
import { createTurnSearch } from './turnSearch.ts';
import type { RunRequest } from './runRequest.ts';
import {
  toClientSessionError,
  loadSessionForRun,
  turnContextOf,
  type SessionLoadLimits,
  type SessionForRun,
} from './queueing/loadSessionForRun.ts';
import { sessionBusyError } from './queueing/sessionQueue.ts';
import { compactBeforeTurn, type CompactionContext } from './model/compaction.ts';
import { session, type RunningSession, type SessionCommand } from '../sessions/decider.ts';
import type { ChatSettings } from '../sessions/turns/chat.ts';
import { turnsFromEvents, type Turn } from '../sessions/turns/prompt.ts';
import { isoTime, recordingTime } from '../ports/clock.ts';
import { authorOf, prepareEvents } from '../commandHandling/prepareEvents.ts';
import { summaryReference } from '../sessions/history/loadSession.ts';
import { appendEvents } from '../eventlog/append.ts';

type StartTurnContext = CompactionContext &
  RecoveryContext &
  RunSlice<'cachedRows' | 'instance', 'liveTurns' | 'openTurnQueue' | 'turnSearches'>;

/** The settings and the session for the start of a turn. */
interface TurnStart {
  settings: ChatSettings;
  loaded: SessionForRun;
}

function startTurnCommand(
  { instance, limits, clock }: Pick<RunContext, 'instance' | 'limits' | 'clock'>,
  { actor, agent, session_id, new_session, input, claim, replay }: RunRequest,
  { settings, loaded }: TurnStart,
): SessionCommand {
  const { state, history, summary } = loaded;
  return {
    type: 'start_turn',
    agent_id: agent.agent_id,
    new_session,
    ...(actor.chat && { user_hmac: actor.chat.user_hmac }),
    ...(replay && { replay }),
    turn: {
      input,
      agent_revision: agent.revision,
      model: agent.model,
      settings,
      context_from_turn: history[0]?.turn ?? (state.status === 'none' ? 1 : state.turn + 1),
      context: turnContextOf(loaded),
      ...(summary && summaryReference(summary, session_id)),
      owner: instance.id,
      deadline: isoTime(recordingTime(clock) + limits.timeoutMs),
      ...(replay && { replay_of: replay.turn }),
      ...(claim && { idempotency_key: claim.request_id }),
    },
  };
}

/**
 * Decides and appends `turn_started`. An append with an unknown outcome is added to
 * `openTurnQueue`.
 */
async function appendTurnStarted(
  context: StartTurnContext,
  request: RunRequest,
  start: TurnStart,
): Promise<Omit<OpenRun, 'reserveBytes' | 'publisher' | 'held'>> {
  const { settings, loaded } = start;
  const { session_id, actor } = request;
  const startedAt = performance.now();
  const events = session.decide(startTurnCommand(context, request, start), loaded.state);
  const target = { stream: sessionStream(session_id), head: loaded.head };
  try {
    const prepared = await prepareEvents(context, authorOf(actor), loaded.head, events);
    const { head, position, lastEventId } = await appendEvents(context.store, target, prepared);
    renewWaitBudget();
    return {
      request,
      state: events.reduce(session.evolve, loaded.state) as RunningSession,
      settings,
      history: loaded.history,
      summary: loaded.summaryInPrompt,
      context: turnContextOf(loaded),
      turn: turnsFromEvents(events)[0]!,
      causation_id: lastEventId,
      position,
      head,
      startedAt,
    };
  } catch (error) {
    if (isLogUnavailable(error))
      context.runState.openTurnQueue.add(session_id, loaded.head.revision + 1);
    if (isTurnlogError(error, 'event_invalid'))
      throw new TurnlogError('payload_too_large', 'The input is too large to be recorded.', {
        cause: error,
      });
    throw error;
  }
}

/** Ends the load of a session whose turns need more memory than the run has. */
class HistoryNeedsMemory extends Error {
  readonly bytes: number;

  constructor(bytes: number) {
    super(`The prompt needs ${bytes} bytes of memory.`);
    this.bytes = bytes;
  }
}

/** The memory of a prompt with these turns, as far as a run counts it. */
const memoryOf = (
  { largestPrompt }: RunPermit,
  request: RunRequest,
  turns: readonly Turn[],
): number => Math.min(promptMemory(request, turns), largestPrompt);

/**
 * Grows the memory of the run to that of its prompt with these turns. A run that has to wait for it
 * reserves twice as much, so that a long session is not loaded for each of its pages.
 */
function reserveHistory(permit: RunPermit, request: RunRequest, turns: readonly Turn[]): void {
  const bytes = memoryOf(permit, request, turns);
  if (!permit.grow(bytes)) throw new HistoryNeedsMemory(Math.min(2 * bytes, permit.largestPrompt));
}

/** The event that begins a turn, as far as quotas read it. */
const TURN_START = { type: 'session.turn_started.v1', data: {} };
const PAUSES = { firstMs: 5, longestMs: 250 };

/**
 * Starts a turn of the session. While another run holds the session, retries until the wait limit.
 * An open turn without a run is closed first.
 */
export async function startTurn(
  context: StartTurnContext,
  request: RunRequest,
  {
    permit,
    signal,
    setOrigins,
  }: { permit: RunPermit } & Pick<SessionLoadLimits, 'signal' | 'setOrigins'>,
): Promise<OpenRun> {
  const { session_id, claim } = request;
  const { settings, historyTokens } = await planPromptBudget(context, request);
  const ownBytes = promptBytes(request, []);
  const available = {
    tokens: historyTokens,
    bytes: permit.largestPrompt - ownBytes,
    messages: LIMITS.run.promptMessages,
  };
  const bounds = {
    until: performance.now() + context.limits.waitMs,
    signal,
    setOrigins,
    reserve: (turns: readonly Turn[]) => reserveHistory(permit, request, turns),
  };
  const conflicts = createConflictLimit(context, sessionStream(session_id), {
    ...bounds,
    limitError: sessionBusyError,
  });

  let compactionTried = false;
  const { account_id } = request.actor;
  // Runs of replays have no request that reserves it.
  const source = { ...context, reserveRead: createReadReservation(context.memory, account_id) };
  const search = claim && createTurnSearch(source, { account_id, session_id, claim });

  /**
   * `turn_open` while another run holds the session; `reload` if the session must be loaded again.
   */
  async function attempt(): Promise<OpenRun | 'turn_open' | 'reload'> {
    const loaded = await loadSessionForRun(context, request, available, bounds);
    if (search) await search.requireNone(loaded.head.revision, bounds);
    // Compaction is attempted once. Without a summary, the turn starts with fewer older turns.
    if (!compactionTried) {
      // A summary costs a model call, and is recorded even where the turn may not be.
      await context.store.requireRoom?.(
        request.actor.account_id,
        [TURN_START],
        request.input.length,
      );
      const before = { settings, loaded, available, signal };
      const isCompacted = await compactBeforeTurn(context, request, before, bounds);
      // A compaction that ended for lack of memory does not count.
      compactionTried = true;
      if (isCompacted) return 'reload';
    }
    const bytes = memoryOf(permit, request, loaded.history);
    if (!permit.resize(bytes)) throw new HistoryNeedsMemory(bytes);
    // The key may have been revoked while the run waited. A replay does not need its key any more.
    const { actor } = request;
    if (!request.replay && !(await isStillValid(context.cachedRows, actor, context.clock.now())))
      throw unauthorizedError();
    try {
      const run = await appendTurnStarted(context, request, { settings, loaded });
      const subject = { account_id, session_id, turn: run.state.turn };
      const live = context.runState.liveTurns.begin(
        subject,
        request.deltas !== undefined,
        run.head.key,
      );
      const reserveBytes = (more: number): boolean => {
        const isReserved = permit.resize(bytes + more);
        if (!isReserved) permit.countRejection();
        return isReserved;
      };
      return { ...run, publisher: live, reserveBytes, held: createHeldAnswers() };
    } catch (error) {
      if (isRejection(error, 'turn_open')) {
        // This run holds the session queue, so no other run of this process has that turn.
        const { appended } = await interruptIfOrphaned(context, { session_id, loaded }, bounds);
        return appended ? 'reload' : 'turn_open';
      }
      if (!isTurnlogError(error, 'stream_conflict')) throw error;
      await conflicts.recordConflict(loaded.head.revision);
      if (search && request.new_session) await search.requireNone(0, bounds);
      return 'reload';
    }
  }

  const pauses = createBackoff(PAUSES);
  for (;;) {
    const pauseMs = pauses.next();
    const run = await attempt().catch(async (error: unknown) => {
      if (!(error instanceof HistoryNeedsMemory))
        throw await toClientSessionError(context, request, error);
      // While it waits, the run holds neither capacity nor the loaded session.
      await permit.acquire(error.bytes, Math.max(0, bounds.until - performance.now()), signal);
      return 'reload' as const;
    });
    if (run === 'reload') continue;
    if (run !== 'turn_open') return run;
    if (performance.now() + pauseMs > bounds.until) throw sessionBusyError();
    await sleep(pauseMs, signal);
  }
}
