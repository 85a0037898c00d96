import { createBackoff } from '../../lib/time/backoff.ts';
import { sleep } from '../../lib/time/sleep.ts';
import { isRejection } from '../../domain/rejection.ts';
import { isStillValid, unauthorizedError } from '../../accounts/authenticate.ts';
import { sessionErasedError } from '../../erasure/errors.ts';
import { readUntilComplete } from '../../eventlog/reading/readUntilComplete.ts';
import type { SessionRow } from '../../readModels/tables.ts';
import {
  waitUntilVisible,
  type Actor,
  type VisibilityContext,
} from '../../commandHandling/context.ts';
import { authorOf } from '../../commandHandling/prepareEvents.ts';
import { handleLoaded, type HandleResult } from '../../commandHandling/handle.ts';
import { interruptIfOrphaned, type RecoveryContext } from '../recovery/interruptTurn.ts';
import type { RunSlice } from '../context.ts';
import type { RunWaitLimits } from './loadSessionForRun.ts';
import { sessionBusyError } from './sessionQueue.ts';
import type { SessionCommand } from '../../sessions/decider.ts';
import {
  findMissingEvents,
  sessionTarget,
  type LoadedSession,
} from '../../sessions/history/loadSession.ts';
import { findOwnSession } from '../../sessions/queries.ts';

const PAUSES = { firstMs: 5, longestMs: 250 };

export type SessionChangeContext = RecoveryContext &
  VisibilityContext &
  RunSlice<'cachedRows' | 'limits' | 'onClientDisconnect', 'sessionQueue'>;

/** A session and its row, which may show fewer events. */
interface SessionToChange extends LoadedSession {
  row: SessionRow;
}

/** The command that changes a session. Called again after a conflict. */
type SessionCommandFor = (session: SessionToChange) => Promise<SessionCommand>;

interface ChangeRequest {
  actor: Actor;
  session_id: string;
  commandFor: SessionCommandFor;
}

/** Changes the session once. Rejects while a turn is open. */
function change(
  context: SessionChangeContext,
  { actor, session_id, commandFor }: ChangeRequest,
  bounds: RunWaitLimits,
): Promise<HandleResult<SessionToChange>> {
  const target = sessionTarget(session_id);
  const load = async (): Promise<SessionToChange> => {
    const row = await findOwnSession(context, actor.account_id, session_id);
    if (row.status === 'erased') throw sessionErasedError();
    return { ...(await target.load({ ...context, waitLimits: bounds })), row };
  };
  const authoredFor = async (session: SessionToChange) => {
    // The stream is damaged, or a node of the cluster lags behind.
    if (session.state.status === 'none') return undefined;
    // The key may have been revoked while the change waited.
    if (!(await isStillValid(context.cachedRows, actor, context.clock.now())))
      throw unauthorizedError();
    return { author: authorOf(actor), command: await commandFor(session) };
  };
  const limit = { ...bounds, limitError: sessionBusyError };
  return readUntilComplete(
    context,
    target.stream,
    {
      read: () =>
        handleLoaded(
          context,
          { stream: target.stream, decider: target.decider, load },
          authoredFor,
          limit,
        ),
      findFlaw: ({ loaded }) => findMissingEvents(loaded),
    },
    bounds,
  );
}

/** Changes the session when no turn is open. Throws `session_busy` if a turn stays open for too long. */
async function changeWhenIdle(
  context: SessionChangeContext,
  request: ChangeRequest,
  bounds: RunWaitLimits,
): Promise<HandleResult<SessionToChange>> {
  const pauses = createBackoff(PAUSES);
  for (;;) {
    try {
      return await change(context, request, bounds);
    } catch (error) {
      if (!isRejection(error, 'turn_open')) throw error;
    }
    const { appended } = await interruptIfOrphaned(context, request, bounds);
    if (appended) continue;
    const pauseMs = pauses.next();
    if (performance.now() + pauseMs > bounds.until) throw sessionBusyError();
    await sleep(pauseMs, bounds.signal);
  }
}

/**
 * Sends a command to a session of the actor's account between its turns, after waiting for its runs.
 * The change is durable and visible when the promise resolves with the session's row, in which the
 * command's own columns may still be unchanged. Errors: `session_not_found`, `session_erased`,
 * `session_busy`, `unauthorized` for a key that was revoked during the wait, `stream_damaged`,
 * `release_too_old`, `key_missing`, `store_unavailable`, the reason of the client's disconnect, and
 * those of `commandFor`.
 */
export async function changeBetweenTurns(
  context: SessionChangeContext,
  request: ChangeRequest,
): Promise<SessionRow> {
  const { runState, limits } = context;
  const { actor, session_id } = request;
  const { status } = await findOwnSession(context, actor.account_id, session_id);
  if (status === 'erased') throw sessionErasedError();
  using held = new DisposableStack();
  const leaving = new AbortController();
  const stopWatching = context.onClientDisconnect?.((reason) => leaving.abort(reason));
  if (stopWatching) held.defer(stopWatching);
  const bounds = { until: performance.now() + limits.waitMs, signal: leaving.signal };
  held.defer(await runState.sessionQueue.acquire(session_id, limits.waitMs, leaving.signal));
  const { loaded, appended } = await changeWhenIdle(context, request, bounds);
  if (appended) await waitUntilVisible(context, appended.position);
  const { row, state, head } = loaded;
  return {
    ...row,
    status: 'idle',
    ...('turn' in state && { turns: state.turn }),
    updated_at: appended?.recorded_at ?? row.updated_at,
    revision: appended?.head.revision ?? head.revision,
  };
}
