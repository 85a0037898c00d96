import { TurnlogError } from '../errors.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { readPage, type StreamSource } from '../eventlog/readWhole.ts';
import type { Flaw } from '../eventlog/streamDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { untilWhole } from '../eventlog/untilWhole.ts';
import type { KnownEvent } from '../eventlog/wholeStream.ts';
import type { ReadModels } from '../ports/readModels.ts';
import type { SessionRow, TurnRow } from '../readModels/tables.ts';
import { cutPage, oneMoreThan, pageOf, type PageOf } from './page.ts';

/** Errors: `session_not_found`, the same where there is none and where it is another account's. */
function requireOwn(
  session: SessionRow | undefined,
  accountId: string,
): asserts session is SessionRow {
  if (session?.account_id !== accountId)
    throw new TurnlogError('session_not_found', 'There is no such session.');
}

interface SessionFilter {
  limit: number;
  after?: string;
  agent_id?: string;
}

/** The account's sessions, newest first, of one agent if one is named. */
export const listSessions = (
  readModels: ReadModels,
  accountId: string,
  filter: SessionFilter,
): Promise<PageOf<SessionRow>> =>
  pageOf(
    filter.limit,
    (row) => row.session_id,
    (limit) => readModels.listSessions(accountId, { ...filter, limit }),
  );

interface NumberedPage {
  limit: number;
  after?: number;
}

/**
 * A session and a page of its turns, oldest first, after turn number `after`.
 * Errors: `session_not_found`.
 */
export async function readTranscript(
  readModels: ReadModels,
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<{ session: SessionRow; turns: PageOf<TurnRow> }> {
  const found = await readModels.findTranscript(sessionId, {
    ...page,
    limit: oneMoreThan(page.limit),
  });
  requireOwn(found?.session, accountId);
  return {
    session: found.session,
    turns: cutPage(page.limit, (row) => String(row.turn), found.turns),
  };
}

/**
 * What one look at a page of a stream showed, and the event at revision 0 where the page does not
 * begin there.
 */
interface PageOfStream {
  page: PageOf<KnownEvent>;
  beginning: KnownEvent[] | undefined;
}

/**
 * A page of a session's events as they were recorded, oldest first, after revision `after`.
 * Errors: `session_not_found`, `stream_damaged` (noted) where the page, or the beginning of the
 * stream, is not whole, or the stream ends, for some seconds, before what the read models have seen
 * of it.
 */
export async function readSessionEvents(
  source: StreamSource & { readModels: Pick<ReadModels, 'findSession'> },
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<PageOf<RecordedEvent>> {
  const row = await source.readModels.findSession(sessionId);
  requireOwn(row, accountId);
  const { revision: shown } = row;
  const stream = sessionStream(sessionId);
  const from = page.after === undefined ? 0 : page.after + 1;
  const read = (first: number, limit: number): Promise<KnownEvent[]> =>
    readPage(source, stream, { direction: 'forwards', from: first, limit });
  const lastOf = ({ rows }: PageOf<KnownEvent>): number =>
    rows.at(-1)?.recorded.revision ?? from - 1;

  async function look(): Promise<PageOfStream> {
    const [found, beginning] = await Promise.all([
      pageOf(
        page.limit,
        ({ recorded }: KnownEvent) => String(recorded.revision),
        (limit) => read(from, limit),
      ),
      from > 0 ? read(0, 1) : undefined,
    ]);
    return { page: found, beginning };
  }

  function missing({ page: found, beginning }: PageOfStream): Flaw | undefined {
    if (beginning?.length === 0) return { reason: 'its beginning is missing', revision: 0 };
    const due = lastOf(found) + 1;
    return found.next !== undefined || due > shown
      ? undefined
      : { reason: `revision ${due} is missing`, revision: due };
  }

  const { page: found } = await untilWhole(source, stream, { look, missing });
  source.damaged.forget(stream, { from, to: lastOf(found) });
  return { rows: found.rows.map(({ recorded }) => recorded), next: found.next };
}
