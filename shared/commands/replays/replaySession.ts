import { session } from '../../domain/session/decider.ts';
import type { SessionStartedData } from '../../domain/session/events.ts';
import { isRejection } from '../../domain/rejection.ts';
import type { StreamSource } from '../../eventlog/noteDamage.ts';
import { readPage } from '../../eventlog/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { Actor } from '../context.ts';
import { handle, type HandleContext } from '../handle.ts';
import { sessionNotFound } from '../run/sessionOfRun.ts';
import { newStream } from '../target.ts';

/**
 * How a recorded session begins. Errors: `session_not_found`, also for another account's,
 * `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`.
 */
export async function beginningOf(
  source: StreamSource,
  accountId: string,
  sessionId: string,
): Promise<SessionStartedData> {
  const beginning = { direction: 'forwards', from: 0, limit: 1 } as const;
  const [first] = await readPage(source, sessionStream(sessionId), beginning);
  const own = first?.recorded.metadata.account_id === accountId;
  if (!own || first.event.type !== 'session.started.v1') throw sessionNotFound();
  return first.event.data;
}

/**
 * Begins a session that a replay makes, unless it was begun before. Errors: those of handle.
 */
export async function beginReplaySession(
  context: HandleContext,
  actor: Actor,
  sessionId: string,
  begun: SessionStartedData & Required<Pick<SessionStartedData, 'replay'>>,
): Promise<void> {
  const stream = sessionStream(sessionId);
  const beginning = { direction: 'forwards', from: 0, limit: 1 } as const;
  if ((await readPage(context, stream, beginning)).length > 0) return;
  try {
    await handle(context, actor, newStream(stream, session), { type: 'begin_session', ...begun });
  } catch (error) {
    if (!isRejection(error, 'session_exists')) throw error;
  }
}
