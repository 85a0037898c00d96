import { TurnlogError } from '../errors.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { EventStore, StoredEvent } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { SessionRow, TurnRow } from '../projections/rows.ts';
import { cutPage, oneMoreThan, pageOf, type PageOf } from './page.ts';

/** Errors: `session_not_found`, the same where there is none and where it is another account's. */
function requireOwn(session: SessionRow | undefined, accountId: string): asserts session is SessionRow {
  if (session?.account_id !== accountId) throw new TurnlogError('session_not_found', 'There is no such session.');
}

export interface SessionFilter {
  limit: number;
  after?: string;
  agent_id?: string;
}

/** The account's sessions, newest first, of one agent if one is named. */
export const listSessions = (readModels: ReadModels, accountId: string, filter: SessionFilter): Promise<PageOf<SessionRow>> =>
  pageOf(filter.limit, (row) => row.session_id, (limit) => readModels.listSessions(accountId, { ...filter, limit }));

interface NumberedPage {
  limit: number;
  after?: number;
}

/** A session and a page of its turns, oldest first, after turn number `after`. Errors: `session_not_found`. */
export async function readTranscript(readModels: ReadModels, accountId: string, sessionId: string, page: NumberedPage): Promise<{ session: SessionRow; turns: PageOf<TurnRow> }> {
  const found = await readModels.findTranscript(sessionId, { ...page, limit: oneMoreThan(page.limit) });
  requireOwn(found?.session, accountId);
  return { session: found.session, turns: cutPage(page.limit, (row) => String(row.turn), found.turns) };
}

/** A page of a session's events as they were recorded, oldest first, after revision `after`. Errors: `session_not_found`. */
export async function readSessionEvents(
  { readModels, store }: { readModels: ReadModels; store: EventStore },
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<PageOf<RecordedEvent>> {
  requireOwn(await readModels.findSession(sessionId), accountId);
  const from = page.after === undefined ? 0 : page.after + 1;
  const events = await pageOf(page.limit, (event: StoredEvent) => String(event.revision), (limit) => store.readStream(sessionStream(sessionId), { direction: 'forwards', from, limit }));
  return { rows: events.rows.map(decodeEvent), next: events.next };
}
