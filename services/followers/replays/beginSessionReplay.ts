import { readOrigins } from '../../../shared/sessions/history/origins.ts';
import { beginReplaySession } from '../../../shared/replays/turns/startReplaySession.ts';
import {
  readReplayedTurns,
  type ReplayedTurns,
} from '../../../shared/replays/turns/replayedTurns.ts';
import { createTurnNumbers } from '../../../shared/replays/turns/turnNumbers.ts';
import { chooseInstruction, type SessionPair } from '../../../shared/replays/turns/turnToReplay.ts';
import type {
  Budget,
  RunningReplay,
  WholeTurn,
} from '../../../shared/replays/comparison/turnPair.ts';
import type { ReplayedSession } from '../../../shared/replays/sessionStates.ts';
import type { ForkedFrom, SessionStartedData } from '../../../shared/sessions/events.ts';
import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import { readFirstEvent } from '../../../shared/eventlog/reading/readWhole.ts';
import { sessionStream } from '../../../shared/eventlog/streams.ts';
import { LIMITS } from '../../../shared/limits.ts';
import { createComparisonBuffer, type ComparisonBuffer } from './comparisonBuffer.ts';
import type { RetryTransient } from './transientFailures.ts';
import type { ReplayStream } from './replayStream.ts';
import type { ReplayRunContext } from './replayContext.ts';
import type { SessionMemory } from './sessionMemory.ts';

/** A session to replay, and the resources of its replay. */
export interface SessionRun {
  replay: RunningReplay;
  log: ReplayStream;
  session: ReplayedSession;
  budget: Budget;
  sessionMemory: SessionMemory;
  signal: AbortSignal;
  retry: RetryTransient;
}

/** The state of one session's replay. */
export interface SessionReplay extends SessionPair {
  turns: ReplayedTurns;
  comparisons: ComparisonBuffer;
  /** Summaries made since the last replayed turn. */
  compactions: WholeTurn['compactions'];
}

/** The turn after which the replayed turns begin. */
export const forkPointOf = (
  session_id: string,
  { started, revision, hash }: WholeTurn,
): ForkedFrom => ({
  session_id,
  turn: started.turn,
  revision,
  hash,
});

/** Returns the id of the replay's session, and records it before the session begins. */
async function reserveSessionId(
  { context }: ReplayRunContext,
  { log, session: { session_id, replay_session_id } }: SessionRun,
): Promise<string> {
  if (replay_session_id !== undefined) return replay_session_id;
  const id = context.ids.typeId('session');
  await log.record({ type: 'start_session', session_id, replay_session_id: id });
  // Another process may have recorded its id first.
  const state = log.state();
  return ('sessions' in state && state.sessions.get(session_id)?.replay_session_id) || id;
}

/** Throws `invalid_request` when the session has too many fork ancestors to be forked again. */
async function requireForkable({ context }: ReplayRunContext, sessionId: string): Promise<void> {
  const origins = await readOrigins(
    context,
    await readFirstEvent(context, sessionStream(sessionId)),
  );
  if (origins.length < LIMITS.turn.origins) return;
  const message = `The session is a fork of ${origins.length} forks: it can only be replayed from its own first turn.`;
  throw new TurnlogError('invalid_request', message);
}

/**
 * Begins the session in which another one is replayed, unless it exists. `forkPoint` is the last turn
 * that both share, if turns before the first replayed one are left out.
 */
export async function beginSessionReplay(
  replaying: ReplayRunContext,
  run: SessionRun,
  recorded: SessionStartedData,
  forkPoint: ForkedFrom | undefined,
): Promise<SessionReplay> {
  const { context } = replaying;
  const { replay, log, session, budget, retry } = run;
  const { session_id } = session;
  const forked_from = forkPoint ?? recorded.forked_from;
  const shared = forked_from?.turn ?? 0;
  if (forkPoint) await retry(() => requireForkable(replaying, session_id));
  const replay_session_id = await retry(() => reserveSessionId(replaying, run));
  const instruction = chooseInstruction(replay.settings, recorded);
  const sessionStart = {
    agent_id: replay.settings.agent_id ?? recorded.agent_id,
    replay: { replay_id: replay.replay_id, session_id, role: 'replay' },
    ...(forked_from && { forked_from }),
    ...(instruction !== undefined && { instruction }),
  } as const;
  await retry(() => beginReplaySession(context, log.actor, replay_session_id, sessionStart));
  return {
    replay,
    recorded,
    replay_session_id,
    numbers: createTurnNumbers(shared),
    turns: readReplayedTurns(context, {
      sessionId: replay_session_id,
      shared,
      onTry: (_, turn, tokens) => budget.took({ session_id, turn, in: replay_session_id, tokens }),
    }),
    comparisons: createComparisonBuffer(log, session_id, retry),
    compactions: [],
  };
}
