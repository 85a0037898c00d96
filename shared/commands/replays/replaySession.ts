import { session } from '../../domain/session/decider.ts';
import type { ForkedFrom, SessionStartedData } from '../../domain/session/events.ts';
import { isRejection } from '../../domain/rejection.ts';
import type { StreamSource } from '../../eventlog/noteDamage.ts';
import { readPage } from '../../eventlog/readWhole.ts';
import { sessionStream } from '../../eventlog/streams.ts';
import type { Actor } from '../context.ts';
import { handle, type HandleContext } from '../handle.ts';
import { sessionNotFound } from '../run/sessionOfRun.ts';
import { newStream } from '../target.ts';
import type { RunningReplay } from './turnPair.ts';

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

/** A session that a replay is about to make. */
interface ToBegin {
  session_id: string;
  replay_session_id: string;
  recorded: SessionStartedData;
  /** Where its first turn is a later one: what comes before that is shared. */
  forked_from: ForkedFrom | undefined;
}

/**
 * Begins the session in which a recorded one is replayed, unless it was begun before. Errors: those
 * of handle.
 */
export async function beginReplaySession(
  context: HandleContext,
  actor: Actor,
  { replay_id, settings }: RunningReplay,
  { session_id, replay_session_id, recorded, forked_from }: ToBegin,
): Promise<void> {
  const instruction = settings.instruction ?? recorded.instruction;
  const beginning = { direction: 'forwards', from: 0, limit: 1 } as const;
  if ((await readPage(context, sessionStream(replay_session_id), beginning)).length > 0) return;
  const target = newStream(sessionStream(replay_session_id), session);
  try {
    await handle(context, actor, target, {
      type: 'begin_session',
      agent_id: settings.agent_id ?? recorded.agent_id,
      replay: { replay_id, session_id, role: 'replay' },
      ...(forked_from && { forked_from }),
      ...(instruction !== undefined && { instruction }),
    });
  } catch (error) {
    if (!isRejection(error, 'session_moved')) throw error;
  }
}
