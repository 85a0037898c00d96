import { setTimeout as sleep } from 'node:timers/promises';
import { TurnlogError } from '../errors.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { foundDamaged, readBeginning, readPage, type StreamSource } from '../eventlog/readWhole.ts';
import { sessionStream } from '../eventlog/streams.ts';
import type { KnownEvent } from '../eventlog/wholeStream.ts';
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

/**
 * A node of a cluster that only follows may show an event a moment after the read models do; then the page is
 * read again.
 */
const LOOK_AGAIN_AFTER_MS = [100, 400];

/**
 * A page of a session's events as they were recorded, oldest first, after revision `after`.
 * Errors: `session_not_found`, `stream_damaged` (noted) where the page, or the beginning of the stream, is not
 * whole, or the stream ends before what the read models have seen of it.
 */
export async function readSessionEvents(
  source: StreamSource & { readModels: Pick<ReadModels, 'findSession'> },
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<PageOf<RecordedEvent>> {
  const row = await source.readModels.findSession(sessionId);
  requireOwn(row, accountId);
  const stream = sessionStream(sessionId);
  const from = page.after === undefined ? 0 : page.after + 1;
  const read = (limit: number): Promise<KnownEvent[]> =>
    readPage(source, stream, { direction: 'forwards', from, limit });
  const beginning = from > 0 ? readBeginning(source, stream) : undefined;
  for (let look = 0; ; look += 1) {
    const reading = pageOf(page.limit, ({ recorded }) => String(recorded.revision), read);
    const [{ rows, next }] = await Promise.all([reading, beginning]);
    const last = rows.at(-1)?.recorded.revision ?? from - 1;
    if (next !== undefined || last >= row.revision) {
      source.damaged.forget(stream, { from, to: last });
      return { rows: rows.map(({ recorded }) => recorded), next };
    }
    const pause = LOOK_AGAIN_AFTER_MS[look];
    if (pause === undefined)
      throw await foundDamaged(source, stream, { reason: `revision ${last + 1} is missing`, revision: last + 1 });
    await sleep(pause);
  }
}
