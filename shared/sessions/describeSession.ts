import { storeUnavailableError, TurnlogError } from '../lib/errors/turnlogError.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { LIMITS } from '../limits.ts';
import type { SessionRow } from '../readModels/tables.ts';
import type { Actor } from '../commandHandling/context.ts';
import { requireRevision } from '../commandHandling/handle.ts';
import {
  changeBetweenTurns,
  type SessionChangeContext,
} from '../runs/queueing/changeBetweenTurns.ts';
import {
  applyDescriptionChange,
  descriptionFromEvent,
  NO_DESCRIPTION,
  type Description,
  type DescriptionChange,
} from './description.ts';

const PAGE = 100;

/** The session to describe. */
interface DescribedSession {
  session_id: string;
  /** The revisions that the client accepts (If-Match); any if absent. */
  expected?: readonly number[] | undefined;
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

function requireFewLabels({ labels }: Description): void {
  const maxLabels = LIMITS.description.labels;
  if (Object.keys(labels).length <= maxLabels) return;
  const message = `"labels" would be more than ${maxLabels}.`;
  throw new TurnlogError('invalid_request', `The request body is not valid: ${message}`, {
    details: { labels: { message, path: '/labels' } },
  });
}

/**
 * Gives a session of the actor's account a title and labels (RFC 7396), between its turns. Records
 * nothing if the description is unchanged. Errors: those of changeBetweenTurns,
 * `precondition_failed`, `invalid_request` for too many labels.
 */
export async function describeSession(
  context: SessionChangeContext,
  actor: Actor,
  { session_id, expected }: DescribedSession,
  requested: DescriptionChange,
): Promise<SessionRow> {
  let after = NO_DESCRIPTION;
  const row = await changeBetweenTurns(context, {
    actor,
    session_id,
    commandFor: async ({ row: shown, head }) => {
      const before = await descriptionAt(context, shown, head.revision);
      requireRevision(expected, head, 'session');
      after = applyDescriptionChange(before, requested);
      requireFewLabels(after);
      return { type: 'describe_session', before, after };
    },
  });
  return { ...row, ...after };
}
