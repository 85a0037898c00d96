import type { SessionToReplay } from '../events.ts';
import { TurnlogError, type ErrorCode } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import type { ReadModels } from '../../ports/readModels.ts';
import type { SessionRow } from '../../readModels/tables.ts';
import {
  findSessions,
  type SearchSource,
  type SessionSearch,
} from '../../search/searchSessions.ts';

type Source = SearchSource & { readModels: Pick<ReadModels, 'findSession'> };

/** Selects sessions by id, by filter, or both. */
interface SessionSelection {
  sessions?: readonly string[] | undefined;
  filter?: SessionSearch | undefined;
}

const refused = (code: ErrorCode, field: string, problem: string): TurnlogError => {
  const message = `"${field}" ${problem}.`;
  return new TurnlogError(code, `The replay can't be started: ${message}`, {
    details: { [field]: { message, path: `/${field}` } },
  });
};

const pinned = ({ session_id, revision, turns, forked_from }: SessionRow): SessionToReplay => ({
  session_id,
  revision,
  turns,
  ...(forked_from && { shared_turns: forked_from.turn }),
});

/** Rows read at a time. */
const AT_ONCE = 16;

async function named(
  { readModels: { findSession } }: Source,
  accountId: string,
  ids: readonly string[],
): Promise<SessionToReplay[]> {
  const sessions: SessionToReplay[] = [];
  while (sessions.length < ids.length) {
    const next = ids.slice(sessions.length, sessions.length + AT_ONCE);
    for (const row of await Promise.all(next.map((id) => findSession(id)))) {
      const field = `sessions/${sessions.length}`;
      if (row?.account_id !== accountId)
        throw refused('session_not_found', field, 'names no session of the account');
      if (row.status === 'erased')
        throw refused('session_erased', field, 'names a session that is erased');
      sessions.push(pinned(row));
    }
  }
  return sessions;
}

async function filtered(
  source: Source,
  accountId: string,
  filter: SessionSearch,
): Promise<SessionToReplay[]> {
  const limit = LIMITS.replays.sessions;
  const sessions: SessionToReplay[] = [];
  let after: string | undefined;
  for (;;) {
    const { rows, more } = await findSessions(source, accountId, {
      ...filter,
      limit: LIMITS.http.pageEntries,
      bytes: LIMITS.http.pageBytes,
      ...(after !== undefined && { after }),
    });
    sessions.push(...rows.map(pinned));
    if (sessions.length > limit || (sessions.length === limit && more))
      throw refused('invalid_request', 'filter', `is of more than ${limit} sessions`);
    after = rows.at(-1)?.session_id;
    if (!more || after === undefined) break;
  }
  return sessions;
}

/**
 * Selects sessions in their current state; later turns are not replayed. Named sessions come first,
 * then those that match the filter. Without either, all listed sessions are selected. Errors:
 * `session_not_found`, `session_erased`, `invalid_request` for too many sessions, those of
 * findSessions.
 */
export async function findSessionsToReplay(
  source: Source,
  accountId: string,
  { sessions, filter }: SessionSelection,
): Promise<SessionToReplay[]> {
  const namedSessions = sessions ? await named(source, accountId, sessions) : [];
  if (sessions && !filter) return namedSessions;
  const matching = await filtered(source, accountId, filter ?? {});
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
