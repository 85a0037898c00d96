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
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { readUntilComplete } from '../eventlog/reading/untilWhole.ts';
import { LIMITS } from '../limits.ts';
import { sleep } from '../lib/time/sleep.ts';
import { findOwnSession } from './queries.ts';
import type { SessionRow } from '../readModels/tables.ts';
import {
  waitUntilVisible,
  type Actor,
  type VisibilityContext,
} from '../commandHandling/context.ts';
import { authorOf } from '../commandHandling/prepareEvents.ts';
import {
  handleLoaded,
  requireRevision,
  type HandleResult,
  type AuthoredCommand,
} from '../commandHandling/handle.ts';
import { findMissingEvents, sessionTarget, type LoadedSession } from './history/loadSession.ts';
import { interruptIfOrphaned, type RecoveryContext } from '../runs/recovery/interruptTurn.ts';
import type { RunSlice } from '../runs/context.ts';
import { withSessionReadPermit, type RunWaitLimits } from '../runs/queueing/loadSessionForRun.ts';
import { sessionBusy } from '../runs/queueing/sessionQueue.ts';

const PAUSES = { firstMs: 5, longestMs: 250 };
const PAGE = 100;

type DescribeContext = RecoveryContext &
  VisibilityContext &
  RunSlice<'limits' | 'memory' | 'onClientDisconnect', 'sessionQueue'>;

/** A session with its title and labels. */
interface FoundSession extends LoadedSession {
  row: SessionRow;
  described: Description;
}

/** The session to describe. */
interface DescribedSession {
  session_id: string;
  /** The revisions that the client accepts (If-Match); any if absent. */
  expected?: readonly number[] | undefined;
}

interface DescribeRequest extends DescribedSession {
  actor: Actor;
  change: DescriptionChange;
}

/**
 * The title and labels at a revision of the session's stream, from the session's row and later
 * events.
 */
async function descriptionAt(
  context: StreamSource,
  row: SessionRow,
  revision: number,
): Promise<Description> {
  let described: Description = { title: row.title, labels: row.labels };
  if (revision - row.revision > LIMITS.description.laterEvents)
    throw storeUnavailableError(
      'The read models are too far behind to show the title and labels of the session.',
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
  { actor, change, expected }: DescribeRequest,
  { state, described, head }: FoundSession,
): AuthoredCommand<SessionCommand> | undefined {
  // The stream is damaged, or a node of the cluster lags behind.
  if (state.status === 'none') return undefined;
  requireRevision(expected, head, 'session');
  const after = applyDescriptionChange(described, change);
  const maxLabels = LIMITS.description.labels;
  if (Object.keys(after.labels).length > maxLabels) {
    const message = `"labels" would be more than ${maxLabels}.`;
    throw new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
      details: { labels: { message, path: '/labels' } },
    });
  }
  return {
    author: authorOf(actor),
    command: { type: 'describe_session', before: described, after },
  };
}

/** Describes the session. Rejects while a turn is open. */
function describe(
  context: DescribeContext,
  request: DescribeRequest,
  bounds: RunWaitLimits,
): Promise<HandleResult<FoundSession>> {
  const { actor, session_id } = request;
  const target = sessionTarget(session_id);
  const load: () => Promise<FoundSession> = async () => {
    const row = await findOwnSession(context, actor.account_id, session_id);
    if (row.status === 'erased') throw sessionErasedError();
    const loaded = await withSessionReadPermit(context, request, bounds, () =>
      target.load({ ...context, waitLimits: bounds }),
    );
    return { ...loaded, row, described: await descriptionAt(context, row, loaded.head.revision) };
  };
  const limit = { ...bounds, limitError: sessionBusy };
  return readUntilComplete(
    context,
    target.stream,
    {
      read: () =>
        handleLoaded(
          context,
          { stream: target.stream, decider: target.decider, load },
          (session) => describeCommandFor(request, session),
          limit,
        ),
      findFlaw: ({ loaded }) => findMissingEvents(loaded),
    },
    bounds,
  );
}

/**
 * Describes the session when no turn is open. Throws `session_busy` if a turn stays open for too
 * long.
 */
async function describeBetweenTurns(
  context: DescribeContext,
  request: DescribeRequest,
  bounds: RunWaitLimits,
): Promise<HandleResult<FoundSession>> {
  const pauses = createBackoff(PAUSES);
  for (;;) {
    try {
      return await describe(context, request, bounds);
    } catch (error) {
      if (!isRejection(error, 'turn_open')) throw error;
    }
    const { appended } = await interruptIfOrphaned(context, request, bounds);
    if (appended) continue;
    const pauseMs = pauses.next();
    if (performance.now() + pauseMs > bounds.until) throw sessionBusy();
    await sleep(pauseMs, bounds.signal);
  }
}

/**
 * Gives a session of the actor's account a title and labels (RFC 7396). The description is durable
 * and visible when the promise resolves. Waits for runs of the session. Records nothing if the
 * description is unchanged. Errors: `session_not_found`, `session_erased`, `session_busy`,
 * `precondition_failed`, `invalid_request` for too many labels, `stream_damaged`, `release_too_old`, `key_missing`,
 * `store_unavailable`, the reason of the client's disconnect.
 */
export async function describeSession(
  context: DescribeContext,
  actor: Actor,
  { session_id, expected }: DescribedSession,
  change: DescriptionChange,
): Promise<SessionRow> {
  const { runState, limits } = context;
  const { status } = await findOwnSession(context, actor.account_id, session_id);
  if (status === 'erased') throw sessionErasedError();
  using held = new DisposableStack();
  const leaving = new AbortController();
  const stopWatching = context.onClientDisconnect?.((reason) => leaving.abort(reason));
  if (stopWatching) held.defer(stopWatching);
  const bounds = { until: performance.now() + limits.waitMs, signal: leaving.signal };
  held.defer(await runState.sessionQueue.acquire(session_id, limits.waitMs, leaving.signal));
  const request = { actor, session_id, expected, change };
  const { loaded, appended } = await describeBetweenTurns(context, request, bounds);
  if (appended) await waitUntilVisible(context, appended.position);
  const { row, state, described, head } = loaded;
  return {
    ...row,
    ...applyDescriptionChange(described, change),
    status: 'idle',
    ...('turn' in state && { turns: state.turn }),
    updated_at: appended?.recorded_at ?? row.updated_at,
    revision: appended?.head.revision ?? head.revision,
  };
}
