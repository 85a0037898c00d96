import type { ChatSettings } from '../../sessions/turns/chat.ts';
import { session } from '../../sessions/decider.ts';
import type { ModelCall } from '../../sessions/turns/promptParts.ts';
import { compactionRequest, type Turn } from '../../sessions/turns/prompt.ts';
import { isTurnlogError, TurnlogError } from '../../lib/errors/turnlogError.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { errorSummary } from '../../lib/errors/errorSummary.ts';
import { LIMITS } from '../../limits.ts';
import { loggedRequestId } from '../../commandHandling/context.ts';
import { authorOf, prepareEvents } from '../../commandHandling/prepareEvents.ts';
import type { ModelContext, RunSlice, SessionReadContext } from '../context.ts';
import type { HandleContext } from '../../commandHandling/handle.ts';
import {
  newestTurnsThatFit,
  tokensBesideSummary,
  countTurns,
  maxMessages,
  type HistoryBudget,
} from './contextWindow.ts';
import { callModel } from './callModel.ts';
import { createHeldAnswers, type HeldAnswers } from './heldAnswers.ts';
import type { RunRequest } from '../runRequest.ts';
import {
  turnContextOf,
  type SessionForRun,
  loadSessionForRun,
  type SessionLoadLimits,
} from '../queueing/loadSessionForRun.ts';
import { summaryReference } from '../../sessions/history/loadSession.ts';
import { appendEvents } from '../../eventlog/append.ts';

/**
 * Shares of the tokens available for earlier turns: the threshold for compaction, and the part kept
 * verbatim.
 */
const COMPACTION_THRESHOLD = 0.75;
const KEPT_SHARE = 0.4;

export type CompactionContext = ModelContext &
  HandleContext &
  SessionReadContext &
  RunSlice<'limits' | 'logger', 'failedCompactions'>;

/** A session before its next turn starts. */
interface CompactionInput {
  settings: ChatSettings;
  loaded: SessionForRun;
  /** The budget for earlier turns in the prompt. */
  available: HistoryBudget;
  signal: AbortSignal;
}

/** The turns to summarize; empty while all turns fit. */
async function olderTurns(
  { budget }: Pick<ModelContext, 'budget'>,
  request: RunRequest,
  { loaded, available: { tokens, bytes, messages } }: CompactionInput,
): Promise<readonly Turn[]> {
  const { history, turns, summaryInPrompt, whole } = loaded;
  const available =
    (summaryInPrompt && (await tokensBesideSummary(budget, tokens, request, summaryInPrompt))) ??
    tokens;
  const showsAll = whole && history.length === turns.length;
  if (
    showsAll &&
    maxMessages(history) <= messages * COMPACTION_THRESHOLD &&
    (await countTurns(budget, request, history)) <= available * COMPACTION_THRESHOLD
  )
    return [];
  const keptBudget = {
    tokens: available * KEPT_SHARE,
    bytes: bytes * KEPT_SHARE,
    messages: messages * KEPT_SHARE,
  };
  const newestTurns = await newestTurnsThatFit(budget, keptBudget, request, history);
  return history.slice(0, history.length - newestTurns.length);
}

async function summarize(
  context: CompactionContext,
  request: RunRequest,
  { settings, loaded, signal, held }: CompactionInput & { held: HeldAnswers },
  older: readonly Turn[],
) {
  const { summaryTokens, summaryChars } = LIMITS.run;
  const { tools: _, response_format: __, ...rest } = settings;
  const max_output_tokens = Math.min(settings.max_completion_tokens ?? Infinity, summaryTokens);
  const summarySettings: ChatSettings = { ...rest, max_completion_tokens: max_output_tokens };
  const { agent } = request;
  // A fallback model gets the same limit.
  const summarizer = { ...agent, parameters: { ...agent.parameters, max_output_tokens } };
  const calls: ModelCall[] = [];
  const body = compactionRequest(summarySettings, loaded.summaryInPrompt, older);
  const { content, tool_calls } = await callModel(
    context,
    { run: { ...request, agent: summarizer }, request: body, calls, held },
    signal,
  );
  const summary = content?.trim() ?? '';
  if (summary === '' || summary.length > summaryChars || tool_calls.length > 0)
    throw new TurnlogError('model_error', 'The model returned no summary of the older turns.');
  return { summary, settings: summarySettings, call: calls[0]! };
}

/**
 * Summarizes the older turns of a session whose prompts are nearly full, if compaction is enabled
 * for its agent, and records the summary. Returns true if the session must be loaded again. If the
 * model fails, the run continues without a summary, and the next turns do not try again.
 */
export async function compactIfNearlyFull(
  context: CompactionContext,
  request: RunRequest,
  before: CompactionInput,
): Promise<boolean> {
  const { loaded } = before;
  const { state } = loaded;
  const { agent, session_id } = request;
  if (!agent.compaction || state.status !== 'idle') return false;
  const { failedCompactions } = context.runState;
  if (state.turn - (failedCompactions.get(session_id) ?? -Infinity) < LIMITS.run.compactionPause)
    return false;
  const older = await olderTurns(context, request, before);
  return older.length > 0 && compact(context, request, before, older);
}

/** Summarizes these turns. Returns true if the session must be loaded again. */
async function compact(
  context: CompactionContext,
  request: RunRequest,
  before: CompactionInput,
  older: readonly Turn[],
): Promise<boolean> {
  const { loaded, signal } = before;
  const { state, head, summaryInPrompt, summary } = loaded;
  const { agent, session_id, actor } = request;
  if (state.status !== 'idle') return false;
  const { failedCompactions } = context.runState;
  const limit = AbortSignal.any([signal, AbortSignal.timeout(context.limits.timeoutMs)]);
  const { dropped } = turnContextOf(loaded);
  using held = createHeldAnswers();
  try {
    const compaction = {
      from_turn: older[0]!.turn,
      up_to_turn: older.at(-1)!.turn,
      ...(dropped > 0 && { dropped }),
      agent_revision: agent.revision,
      model: agent.model,
      ...(summaryInPrompt && summaryReference(summaryInPrompt, session_id)),
      ...(await summarize(context, request, { ...before, signal: limit, held }, older)),
    };
    const events = session.decide({ type: 'compact_session', compaction }, state);
    const facts = await prepareEvents(context, authorOf(actor), head, events);
    await appendEvents(context.store, { stream: sessionStream(session_id), head }, facts);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (isTurnlogError(error, 'stream_conflict')) return true;
    if (isTurnlogError(error, 'store_unavailable')) throw error;
    if (request.replay && isTurnlogError(error) && error.retriable) throw error;
    failedCompactions.set(session_id, state.turn);
    context.logger.warn(
      {
        request_id: loggedRequestId(actor),
        session_id,
        has_summary: summary !== undefined,
        ...errorSummary(error),
      },
      'older turns could not be summarized; the run continues without a summary',
    );
    return false;
  }
}

/**
 * Summarizes older turns before a turn starts, when prompts are nearly full, or as recorded in a
 * replay. Returns true if the session must be loaded again.
 */
export async function compactBeforeTurn(
  context: CompactionContext,
  request: RunRequest,
  before: CompactionInput,
  bounds: SessionLoadLimits,
): Promise<boolean> {
  const { replay } = request;
  if (!replay?.promptTurns) return compactIfNearlyFull(context, request, before);
  for (const { up_to_turn, settings, fallback, ...promptTurns } of replay.compactions) {
    const compactionRun = { ...request, replay: { ...replay, promptTurns, fallback } };
    const loaded = await loadSessionForRun(context, compactionRun, before.available, bounds);
    const older = loaded.history.filter(({ turn }) => turn <= up_to_turn);
    if (older.length > 0)
      await compact(context, compactionRun, { ...before, settings, loaded }, older);
  }
  return replay.compactions.length > 0;
}
