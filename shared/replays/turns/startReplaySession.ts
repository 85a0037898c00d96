import { session } from '../../sessions/decider.ts';
import type { SessionStartedData } from '../../sessions/events.ts';
import { isRejection } from '../../domain/rejection.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { findFirstEvent, readFirstEvent, readPage } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { TurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import { sessionErasedError } from '../../erasure/errors.ts';
import type { Actor } from '../../commandHandling/context.ts';
import { handle, type HandleContext } from '../../commandHandling/handle.ts';
import { sessionOfAgentNotFoundError } from '../../runs/queueing/loadSessionForRun.ts';
import { newStreamTarget } from '../../commandHandling/targetStream.ts';

/** The data of a recorded session's first event. */
export async function readSessionStart(
  source: StreamSource,
  accountId: string,
  sessionId: string,
): Promise<SessionStartedData> {
  const first = await findFirstEvent(source, sessionStream(sessionId));
  const isOwn = first?.recorded.metadata.account_id === accountId;
  if (!isOwn || first.event.type !== 'session.started.v1') throw sessionOfAgentNotFoundError();
  return first.event.data;
}

/**
 * The recorded session and, if it belongs to a replay itself, the sessions that were replayed before
 * it: its texts come from the first session of that chain.
 */
async function readReplayed(source: StreamSource, sessionId: string): Promise<string[]> {
  const chain: string[] = [];
  for (let id: string | undefined = sessionId; id !== undefined;) {
    chain.push(id);
    // A judge's session may follow the longest chain of replays.
    if (chain.length > LIMITS.replays.depth + 1) return chain;
    const { event } = await readFirstEvent(source, sessionStream(id));
    id = event.type === 'session.started.v1' ? event.data.replay?.session_id : undefined;
  }
  return chain;
}

/**
 * Throws `session_erased` if one of the sessions is erased. It is checked after the start, because
 * an erasure only covers replay sessions that have started.
 */
async function requireUnerased(source: StreamSource, sessionIds: readonly string[]): Promise<void> {
  const newest = { direction: 'backwards', limit: 1 } as const;
  for (const id of sessionIds) {
    const [last] = await readPage(source, sessionStream(id), newest);
    if (last?.event.type === 'session.erased.v1') throw sessionErasedError();
  }
}

const tooDeepError = (): TurnlogError =>
  new TurnlogError(
    'invalid_request',
    `The session was made by ${LIMITS.replays.depth} replays, one of the other: it can't be replayed.`,
  );

/** Starts a session of a replay, unless it exists. */
export async function beginReplaySession(
  context: HandleContext,
  actor: Actor,
  sessionId: string,
  start: SessionStartedData & Required<Pick<SessionStartedData, 'replay'>>,
): Promise<void> {
  const { session_id, role } = start.replay;
  const replayed = await readReplayed(context, session_id);
  if (role === 'replay' && replayed.length > LIMITS.replays.depth) throw tooDeepError();
  const stream = sessionStream(sessionId);
  const first = await findFirstEvent(context, stream);
  const command = { type: 'begin_session', ...start } as const;
  try {
    if (!first) await handle(context, actor, newStreamTarget(stream, session), command);
  } catch (error) {
    if (!isRejection(error, 'session_exists')) throw error;
  }
  await requireUnerased(context, replayed);
}
