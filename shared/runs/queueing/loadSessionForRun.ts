import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import { createReadReservation } from '../../eventlog/reading/readMemory.ts';
import { toDamageError } from '../../eventlog/reading/reportDamage.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { resolvesWithin } from '../../lib/time/resolvesWithin.ts';
import { readUntilComplete } from '../../eventlog/reading/readUntilComplete.ts';
import {
  findMissingEvents,
  NEW_SESSION,
  type LoadedSession,
} from '../../sessions/history/loadSession.ts';
import type { TurnContext } from '../../sessions/turns/promptParts.ts';
import type { SessionReadContext } from '../context.ts';
import type { RunRequest } from '../runRequest.ts';
import {
  bytesOfTurns,
  newestTurnsThatFit,
  tokensBesideSummary,
  type HistoryBudget,
} from '../model/contextWindow.ts';
import type { StreamFlaw } from '../../eventlog/reading/streamDamage.ts';
import type { Summary, Turn } from '../../sessions/turns/prompt.ts';
import { promptTooLargeError } from './admissionControl.ts';
import { loadCachedSession } from './sessionCache.ts';

/** Limits of the wait before a run starts. */
export interface RunWaitLimits {
  /** In milliseconds of `performance.now()`. */
  until: number;
  signal: AbortSignal;
}

/** Limits for loading a session. */
export interface SessionLoadLimits extends RunWaitLimits {
  /**
   * Reserves the memory of the turns read so far, before older ones are read. Throws to end the
   * load.
   */
  reserve: (turns: readonly Turn[]) => void;
  /** Receives the other sessions whose turns the prompt contains, at each load. */
  setOrigins: (origins: readonly string[]) => void;
}

/** The session of a run request. */
export interface RequestedSession extends Pick<
  RunRequest,
  'session_id' | 'new_session' | 'replay'
> {
  actor: Pick<RunRequest['actor'], 'account_id'>;
  agent: Pick<RunRequest['agent'], 'agent_id'>;
}

export const sessionOfAgentNotFoundError = (): TurnlogError =>
  new TurnlogError('session_not_found', 'There is no such session of this agent.');

/**
 * True if the read models show the session to this account and agent. Used if the log does not
 * contain that information.
 */
export async function isVisible(
  { readModels }: Pick<SessionReadContext, 'readModels'>,
  { actor, agent, session_id }: RequestedSession,
): Promise<boolean> {
  const row = await readModels.findSession(session_id);
  return row?.account_id === actor.account_id && row.agent_id === agent.agent_id;
}

/** Runs continue while the read models are unavailable. */
const ROW_WAIT_MS = 500;

/**
 * The newest revision of a session that the read models show, undefined without it: a session that no
 * process has loaded may have lost its end.
 */
async function visibleRevision(
  { readModels }: Pick<SessionReadContext, 'readModels'>,
  sessionId: string,
): Promise<number | undefined> {
  const row = readModels.findSession(sessionId).catch(() => undefined);
  return (await resolvesWithin(row, ROW_WAIT_MS)) ? (await row)?.revision : undefined;
}

/** The session that a run continues. */
export interface SessionForRun extends LoadedSession {
  /** The summary, if it fits the prompt. */
  summaryInPrompt: Summary | undefined;
}

/** Loads the session that a run continues, with the turns that fit. */
export async function loadSessionForRun(
  context: SessionReadContext,
  request: RequestedSession,
  { tokens, ...limits }: HistoryBudget,
  bounds: SessionLoadLimits,
): Promise<SessionForRun> {
  const { session_id } = request;
  const replayed = request.replay?.promptTurns;
  if (request.new_session) return { ...NEW_SESSION, summaryInPrompt: undefined };
  const { store, damaged, budget, runState } = context;
  const tokensAfter = async (summary: Summary | undefined): Promise<number | undefined> =>
    summary && tokensBesideSummary(budget, tokens, request, summary);
  // Runs of replays, too, which no request waits for.
  const reserveRead = createReadReservation(context.memory, request.actor.account_id);
  const load = (): Promise<LoadedSession> =>
    reserveRead(
      () =>
        loadCachedSession(
          {
            store,
            damaged,
            waitLimits: bounds,
            memory: runState.sessionCache,
            setOrigins: bounds.setOrigins,
          },
          session_id,
          async (turns, summary) => {
            bounds.signal.throwIfAborted();
            bounds.reserve(turns);
            if (replayed) {
              const shown = turns.filter(({ turn }) => turn >= replayed.from_turn);
              if (bytesOfTurns(shown) > limits.bytes) throw promptTooLargeError(limits.bytes);
              return shown;
            }
            const remaining = { ...limits, tokens: (await tokensAfter(summary)) ?? tokens };
            return newestTurnsThatFit(budget, remaining, request, turns);
          },
        ),
      bounds,
    );
  const revisionOfRow = runState.sessionCache.has(session_id)
    ? undefined
    : visibleRevision(context, session_id);
  let loaded = await load();
  const visible = await revisionOfRow;
  const findFlaw = (session: LoadedSession): StreamFlaw | undefined =>
    findMissingEvents(session, visible);
  if (findFlaw(loaded)) {
    if (!(await isVisible(context, request))) throw sessionOfAgentNotFoundError();
    const reading = { read: load, findFlaw };
    loaded = await readUntilComplete(context, sessionStream(session_id), reading, bounds);
  }
  if (loaded.account_id !== request.actor.account_id) throw sessionOfAgentNotFoundError();
  const { summary } = loaded;
  const fits = replayed ? replayed.summary : (await tokensAfter(summary)) !== undefined;
  return { ...loaded, summaryInPrompt: fits ? summary : undefined };
}

/**
 * The error for the client of a run. Only the owner of the session may see `stream_damaged`; for
 * others, the session does not exist.
 */
export async function toClientSessionError(
  context: SessionReadContext,
  request: RequestedSession,
  error: unknown,
): Promise<unknown> {
  if (!isTurnlogError(error, 'stream_damaged')) return error;
  const damaged = await toDamageError(
    context,
    sessionStream(request.session_id),
    error,
    '/session_id',
  );
  return request.new_session || (await isVisible(context, request))
    ? damaged
    : sessionOfAgentNotFoundError();
}

/** How much of the session the prompt shows. */
export function turnContextOf({
  state,
  history,
  turns,
  summary,
  summaryInPrompt,
  whole,
}: SessionForRun): TurnContext {
  const before = state.status === 'none' ? 0 : state.turn;
  const oldest = history[0]?.turn ?? before + 1;
  const showsAll = whole && history.length === turns.length;
  // Without the summary, the turns it covers are dropped as well.
  const hidden = summaryInPrompt ? summaryInPrompt.dropped : (summary?.up_to_turn ?? 0);
  return {
    turns: history.length,
    dropped: showsAll
      ? hidden
      : oldest - 1 - (summaryInPrompt ? summaryInPrompt.up_to_turn - summaryInPrompt.dropped : 0),
    ...(summaryInPrompt && { compacted: summaryInPrompt.up_to_turn }),
  };
}
