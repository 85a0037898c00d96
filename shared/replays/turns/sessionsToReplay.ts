import type { SessionToReplay } from '../events.ts';
import { yieldToEventLoop } from '../../lib/concurrency/yieldToEventLoop.ts';
import { TurnlogError, type ErrorCode } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import type { Page, PageOf } from '../../readModels/page.ts';
import {
  findSessions,
  type SearchSource,
  type SessionSearch,
} from '../../search/searchSessions.ts';
import type { SessionRevision } from '../../sessions/sqlQueries.ts';

type Source = SearchSource & {
  readModels: Pick<ReadModels, 'findSession' | 'listSessionRevisions'>;
};

/** Selects sessions by id, by filter, or both. */
interface SessionSelection {
  sessions?: readonly string[] | undefined;
  filter?: SessionSearch | undefined;
  /** Ends the selection. */
  signal?: AbortSignal | undefined;
}

const refused = (code: ErrorCode, field: string, problem: string): TurnlogError => {
  const message = `"${field}" ${problem}.`;
  return new TurnlogError(code, `The replay can't be started: ${message}`, {
    details: { [field]: { message, path: `/${field}` } },
  });
};

const pinned = ({
  session_id,
  revision,
  turns,
  forked_from,
}: SessionRevision): SessionToReplay => ({
  session_id,
  revision,
  turns,
  ...(forked_from && { shared_turns: forked_from.turn }),
});

/**
 * Rows that are read in one step of the event loop. SQLite finds the last columns of a row behind its
 * labels, even where these are not read.
 */
const AT_ONCE = { named: 16, listed: 128 };

async function named(
  { readModels: { findSession } }: Source,
  accountId: string,
  ids: readonly string[],
  signal: AbortSignal | undefined,
): Promise<SessionToReplay[]> {
  const sessions: SessionToReplay[] = [];
  while (sessions.length < ids.length) {
    const next = ids.slice(sessions.length, sessions.length + AT_ONCE.named);
    for (const row of await Promise.all(next.map((id) => findSession(id)))) {
      const field = `sessions/${sessions.length}`;
      if (row?.account_id !== accountId)
        throw refused('session_not_found', field, 'names no session of the account');
      if (row.status === 'erased')
        throw refused('session_erased', field, 'names a session that is erased');
      sessions.push(pinned(row));
    }
    await yieldToEventLoop(accountId);
    signal?.throwIfAborted();
  }
  return sessions;
}

/** A page of the sessions that match. A search takes steps by itself, and begins anew for each page. */
async function listRevisions(
  source: Source,
  accountId: string,
  { q, limit, ...page }: Page & SessionSearch,
): Promise<PageOf<SessionRevision>> {
  if (q !== undefined) return findSessions(source, accountId, { ...page, limit, q });
  const few = Math.min(limit, AT_ONCE.listed);
  return source.readModels.listSessionRevisions(accountId, { ...page, limit: few });
}

/** Every page is a step of the event loop. Reads at most one session more than a replay may have. */
async function filtered(
  source: Source,
  accountId: string,
  filter: SessionSearch,
  signal: AbortSignal | undefined,
): Promise<SessionToReplay[]> {
  const limit = LIMITS.replays.sessions;
  const sessions: SessionToReplay[] = [];
  let after: string | undefined;
  for (;;) {
    const { rows, more } = await listRevisions(source, accountId, {
      ...filter,
      limit: Math.min(LIMITS.http.pageEntries, limit + 1 - sessions.length),
      bytes: LIMITS.http.pageBytes,
      ...(after !== undefined && { after }),
    });
    sessions.push(...rows.map(pinned));
    if (sessions.length > limit)
      throw refused('invalid_request', 'filter', `is of more than ${limit} sessions`);
    after = rows.at(-1)?.session_id;
    if (!more || after === undefined) break;
    await yieldToEventLoop(accountId);
    signal?.throwIfAborted();
  }
  return sessions;
}

/**
 * Selects sessions in their current state; later turns are not replayed. Named sessions come first,
 * then those that match the filter. Without either, all listed sessions are selected. Errors:
 * `session_not_found`, `session_erased`, `invalid_request` for too many sessions, the abort reason,
 * those of findSessions.
 */
export async function findSessionsToReplay(
  source: Source,
  accountId: string,
  { sessions, filter, signal }: SessionSelection,
): Promise<SessionToReplay[]> {
  const namedSessions = sessions ? await named(source, accountId, sessions, signal) : [];
  if (sessions && !filter) return namedSessions;
  const matching = await filtered(source, accountId, filter ?? {}, signal);
  const all = new Map(
    [...namedSessions, ...matching].map((session) => [session.session_id, session]),
  );
  if (all.size === 0) throw refused('session_not_found', 'filter', 'is of no session');
  if (all.size > LIMITS.replays.sessions)
    throw refused(
      'invalid_request',
      'filter',
      `is of more than ${LIMITS.replays.sessions} sessions`,
    );
  return [...all.values()];
}
