import { createBackoff } from '../lib/time/backoff.ts';
import type { SessionCommand } from './commands.ts';
import {
  applyDescriptionChange,
  descriptionFromEvent,
  type Description,
  type DescriptionChange,
} from './description.ts';
import { isRejection } from '../domain/rejection.ts';
import { sessionErasedError } from '../erasure/errors.ts';
import { storeUnavailableError, TurnlogError } from '../lib/errors/turnlogError.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { untilWhole } from '../eventlog/reading/untilWhole.ts';
import { LIMITS } from '../limits.ts';
import { sleep } from '../lib/time/sleep.ts';
import { findOwnSession } from './queries.ts';
import type { SessionRow } from '../readModels/tables.ts';
import { waitUntilVisible, type Actor } from '../commandHandling/context.ts';
import { authorOf } from '../commandHandling/prepareEvents.ts';
import {
  handleLoaded,
  type HandleResult,
  type AuthoredCommand,
} from '../commandHandling/handle.ts';
import { findMissingEvents, sessionTarget, type LoadedSession } from './history/loadSession.ts';
import { interruptIfOrphaned } from '../runs/recovery/interruptTurn.ts';
import type { RunContext } from '../runs/context.ts';
import { withSessionReadPermit, type RunWaitLimits } from '../runs/queueing/loadSessionForRun.ts';
import { sessionBusy } from '../runs/queueing/sessionQueue.ts';

const PAUSES = { firstMs: 5, longestMs: 250 };
const PAGE = 100;

/** A session, and what it is called. */
interface FoundSession extends LoadedSession {
  row: SessionRow;
  described: Description;
}

interface DescribeRequest {
  actor: Actor;
  session_id: string;
  change: DescriptionChange;
}

/**
 * What the session is called at a revision of its stream: its row says so, and what has come since.
 * Errors: those of readPage; `store_unavailable` for a row that is too old.
 */
async function descriptionAt(
  context: RunContext,
  row: SessionRow,
  revision: number,
): Promise<Description> {
  let described: Description = { title: row.title, labels: row.labels };
  if (revision - row.revision > LIMITS.description.laterEvents)
    throw storeUnavailableError(
      'The read models are too far behind to tell what the session is called.',
    );
  for (let from = row.revision + 1; from <= revision;) {
    const page = await readPage(context, sessionStream(row.session_id), {
      direction: 'forwards',
      from,
      limit: Math.min(PAGE, revision - from + 1),
      maxBytes: LIMITS.store.pageBytes,
    });
    if (page.length === 0) break;
    for (const { event } of page)
      if (event.type === 'session.described.v1') described = descriptionFromEvent(event.data);
    from += page.length;
  }
  return described;
}

function describeCommandFor(
  { actor, change }: DescribeRequest,
  { state, described }: FoundSession,
): AuthoredCommand<SessionCommand> | undefined {
  // Looked for again, or damaged.
  if (state.status === 'none') return undefined;
  const after = applyDescriptionChange(described, change);
  const most = LIMITS.description.labels;
  if (Object.keys(after.labels).length > most) {
    const message = `"labels" would be more than ${most}.`;
    throw new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
      details: { labels: { message, path: '/labels' } },
    });
  }
  return {
    author: authorOf(actor),
    command: { type: 'describe_session', before: described, after },
  };
}

/** Describes the session between two turns. Errors: Rejection, and those of describeSession. */
function describe(
  context: RunContext,
  asked: DescribeRequest,
  bounds: RunWaitLimits,
): Promise<HandleResult<FoundSession>> {
  const { actor, session_id } = asked;
  const target = sessionTarget(session_id);
  const load: () => Promise<FoundSession> = async () => {
    const row = await findOwnSession(context, actor.account_id, session_id);
    if (row.status === 'erased') throw sessionErasedError();
    const loaded = await withSessionReadPermit(context, asked, bounds, () => target.load(context));
    return { ...loaded, row, described: await descriptionAt(context, row, loaded.head.revision) };
  };
  const limit = { ...bounds, tooMany: sessionBusy };
  return untilWhole(
    context,
    target.stream,
    {
      look: () =>
        handleLoaded(
          context,
          { stream: target.stream, decider: target.decider, load },
          (found) => describeCommandFor(asked, found),
          limit,
        ),
      missing: ({ loaded }) => findMissingEvents(loaded),
    },
    bounds,
  );
}

/** The same, once no turn is open. Errors: `session_busy` where one is for too long. */
async function describeBetweenTurns(
  context: RunContext,
  asked: DescribeRequest,
  bounds: RunWaitLimits,
): Promise<HandleResult<FoundSession>> {
  const pauses = createBackoff(PAUSES);
  for (;;) {
    try {
      return await describe(context, asked, bounds);
    } catch (error) {
      if (!isRejection(error, 'turn_open')) throw error;
    }
    const { appended } = await interruptIfOrphaned(context, asked, bounds);
    if (appended) continue;
    const pauseMs = pauses.next();
    if (performance.now() + pauseMs > bounds.until) throw sessionBusy();
    await sleep(pauseMs, bounds.signal);
  }
}

/**
 * Gives a session of the actor's account a title and labels (RFC 7396); durable and shown when it
 * resolves. Waits for runs of the session as another run does. What it is called already records
 * nothing.
 * Errors: `session_not_found`, `session_erased`, `session_busy`, `invalid_request` for too many
 * labels, `stream_damaged` (noted), `release_too_old`, `key_missing`, `store_unavailable`, the reason
 * of a client's leaving.
 */
export async function describeSession(
  context: RunContext,
  actor: Actor,
  session_id: string,
  change: DescriptionChange,
): Promise<SessionRow> {
  const { runState, limits } = context;
  const { status } = await findOwnSession(context, actor.account_id, session_id);
  if (status === 'erased') throw sessionErasedError();
  const leaving = new AbortController();
  const stopWatching = context.onClientDisconnect?.((reason) => leaving.abort(reason));
  const bounds = { until: performance.now() + limits.waitMs, signal: leaving.signal };
  let leave: (() => void) | undefined;
  try {
    leave = await runState.sessionQueue.acquire(session_id, limits.waitMs, leaving.signal);
    const asked = { actor, session_id, change };
    const { loaded, appended } = await describeBetweenTurns(context, asked, bounds);
    if (appended) await waitUntilVisible(context, appended.position);
    const { row, state, described } = loaded;
    return {
      ...row,
      ...applyDescriptionChange(described, change),
      status: 'idle',
      ...('turn' in state && { turns: state.turn }),
      updated_at: appended?.recorded_at ?? row.updated_at,
    };
  } finally {
    stopWatching?.();
    leave?.();
  }
}
