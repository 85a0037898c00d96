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
import { retryTransient } from './transientFailures.ts';
import type { ReplayStream } from './replayStream.ts';
import type { ReplayRunContext } from './replayContext.ts';

/** A session that is to be replayed, and what with. */
export interface SessionRun {
  replay: RunningReplay;
  log: ReplayStream;
  session: ReplayedSession;
  budget: Budget;
  signal: AbortSignal;
}

/** What stands while the turns of one session are replayed. */
export interface SessionReplay extends SessionPair {
  turns: ReplayedTurns;
  comparisons: ComparisonBuffer;
  /** Summaries that were made since the last turn that was replayed. */
  compactions: WholeTurn['compactions'];
}

/** The turn behind which the replayed ones begin; undefined where they are all. */
const pointOf = (session_id: string, { started, revision, hash }: WholeTurn): ForkedFrom => ({
  session_id,
  turn: started.turn,
  revision,
  hash,
});

/** The id of the replay's session, which is recorded before the session begins. */
async function reservedId(
  { context }: ReplayRunContext,
  { log, session: { session_id, replay_session_id } }: SessionRun,
): Promise<string> {
  if (replay_session_id !== undefined) return replay_session_id;
  const id = context.ids.typeId('session');
  await log.record({ type: 'start_session', session_id, replay_session_id: id });
  // Whoever came first has named it.
  const known = log.state();
  return ('sessions' in known && known.sessions.get(session_id)?.replay_session_id) || id;
}

/** Errors: `invalid_request` where the session shares turns of so many that it can't be shared itself. */
async function requireForkable({ context }: ReplayRunContext, sessionId: string): Promise<void> {
  const origins = await readOrigins(
    context,
    await readFirstEvent(context, sessionStream(sessionId)),
  );
  if (origins.length < LIMITS.turn.origins) return;
  const message = `The session is a fork of ${origins.length} forks: it can only be replayed from its own first turn on.`;
  throw new TurnlogError('invalid_request', message);
}

/**
 * Begins the session in which one is replayed, unless it was before; `before` is the last turn that
 * both share. Errors: those of the commands that do so, the signal's reason.
 */
export async function beginSessionReplay(
  replaying: ReplayRunContext,
  run: SessionRun,
  recorded: SessionStartedData,
  before: WholeTurn | undefined,
): Promise<SessionReplay> {
  const { context } = replaying;
  const { replay, log, session, budget, signal } = run;
  const { session_id } = session;
  const forked_from = before ? pointOf(session_id, before) : recorded.forked_from;
  const shared = forked_from?.turn ?? 0;
  const patience = { signal, logger: context.logger };
  if (before) await retryTransient(() => requireForkable(replaying, session_id), patience);
  const replay_session_id = await retryTransient(() => reservedId(replaying, run), patience);
  const instruction = chooseInstruction(replay.settings, recorded);
  const begun = {
    agent_id: replay.settings.agent_id ?? recorded.agent_id,
    replay: { replay_id: replay.replay_id, session_id, role: 'replay' },
    ...(forked_from && { forked_from }),
    ...(instruction !== undefined && { instruction }),
  } as const;
  await retryTransient(
    () => beginReplaySession(context, log.actor, replay_session_id, begun),
    patience,
  );
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
    comparisons: createComparisonBuffer(log, { session_id, ...patience }),
    compactions: [],
  };
}
