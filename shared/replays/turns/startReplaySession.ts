import { session } from '../../sessions/decider.ts';
import type { SessionStartedData } from '../../sessions/events.ts';
import { isRejection } from '../../domain/rejection.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { readFirstEvent, readPage } from '../../eventlog/reading/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import { sessionErasedError } from '../../erasure/errors.ts';
import type { Actor } from '../../commandHandling/context.ts';
import { handle, type HandleContext } from '../../commandHandling/handle.ts';
import { sessionOfAgentNotFound } from '../../runs/queueing/loadSessionForRun.ts';
import { newStreamTarget } from '../../commandHandling/targetStream.ts';

/** The data of a recorded session's first event. */
export async function readSessionStart(
  source: StreamSource,
  accountId: string,
  sessionId: string,
): Promise<SessionStartedData> {
  const beginning = { direction: 'forwards', from: 0, limit: 1 } as const;
  const [first] = await readPage(source, sessionStream(sessionId), beginning);
  const isOwn = first?.recorded.metadata.account_id === accountId;
  if (!isOwn || first.event.type !== 'session.started.v1') throw sessionOfAgentNotFound();
  return first.event.data;
}

/**
 * Throws `session_erased` if the recorded session is erased. It is checked after the start, because
 * an erasure only covers replay sessions that have started. The recorded session may itself belong
 * to a replay. Its texts then come from the first session of that chain, so the whole chain is
 * checked.
 */
async function requireUnerased(source: StreamSource, sessionId: string): Promise<void> {
  const newest = { direction: 'backwards', limit: 1 } as const;
  for (let id: string | undefined = sessionId; id !== undefined;) {
    const stream = sessionStream(id);
    const [last] = await readPage(source, stream, newest);
    if (last?.event.type === 'session.erased.v1') throw sessionErasedError();
    const { event } = await readFirstEvent(source, stream);
    id = event.type === 'session.started.v1' ? event.data.replay?.session_id : undefined;
  }
}

/** Starts a session of a replay, unless it exists. */
export async function beginReplaySession(
  context: HandleContext,
  actor: Actor,
  sessionId: string,
  start: SessionStartedData & Required<Pick<SessionStartedData, 'replay'>>,
): Promise<void> {
  const stream = sessionStream(sessionId);
  const beginning = { direction: 'forwards', from: 0, limit: 1 } as const;
  const [first] = await readPage(context, stream, beginning);
  const command = { type: 'begin_session', ...start } as const;
  try {
    if (!first) await handle(context, actor, newStreamTarget(stream, session), command);
  } catch (error) {
    if (!isRejection(error, 'session_exists')) throw error;
  }
  await requireUnerased(context, start.replay.session_id);
}
