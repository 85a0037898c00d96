import { TurnlogError } from '../errors.ts';
import { decodeEvent } from '../eventlog/codec.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { EventStore, StoredEvent } from '../ports/eventStore.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { SessionRow, TurnRow } from '../projections/rows.ts';
import { pageOf, type PageOf } from './page.ts';

/** The account's session of that id. Errors: `session_not_found`, the same for an unknown id and for another account's session. */
async function findOwnSession(readModels: ReadModels, accountId: string, sessionId: string): Promise<SessionRow> {
  const session = await readModels.findSession(sessionId);
  if (!session || session.account_id !== accountId) throw new TurnlogError('session_not_found', 'There is no such session.');
  return session;
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
  const session = await findOwnSession(readModels, accountId, sessionId);
  return { session, turns: await pageOf(page.limit, (row) => String(row.turn), (limit) => readModels.listTurns(sessionId, { ...page, limit })) };
}

/** A page of a session's events as they were recorded, oldest first, after revision `after`. Errors: `session_not_found`. */
export async function readSessionEvents(
  { readModels, store }: { readModels: ReadModels; store: EventStore },
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<PageOf<RecordedEvent>> {
  await findOwnSession(readModels, accountId, sessionId);
  const from = page.after === undefined ? 0 : page.after + 1;
  const events = await pageOf(page.limit, (event: StoredEvent) => String(event.revision), (limit) => store.readStream(sessionStream(sessionId), { direction: 'forwards', from, limit }));
  return { rows: events.rows.map(decodeEvent), next: events.next };
}
