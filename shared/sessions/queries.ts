import { sessionErasedError } from '../erasure/errors.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { discloseEvents } from '../eventlog/encryption/openTexts.ts';
import { withLostKeyReports, type StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import type { StreamFlaw } from '../eventlog/reading/streamDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { readUntilComplete } from '../eventlog/reading/untilWhole.ts';
import { mapTexts, withheld } from '../transparency/proof/shownTexts.ts';
import type { SessionRow } from '../readModels/tables.ts';
import type { Bounds, PageOf, ReadModels } from '../ports/readModels.ts';

/** The same error for an unknown session and for one of another account. */
export const sessionNotFound = (): TurnlogError =>
  new TurnlogError('session_not_found', 'There is no such session.');

export type NumberedPage = Bounds & { after?: number };

/** A page of a stream, and the event at revision 0 if the page starts later. */
interface PageOfStream {
  page: PageOf<RecordedEvent>;
  beginning: RecordedEvent[] | undefined;
}

/** Events read at a time, because an event may have a megabyte. */
const GROUP = 8;

type ReadGroup = (from: number, limit: number) => Promise<RecordedEvent[]>;

/** Reads a page in groups of events, with at most one group beyond it. */
async function readInGroups(
  read: ReadGroup,
  from: number,
  { limit, bytes }: Bounds,
): Promise<PageOf<RecordedEvent>> {
  const rows: RecordedEvent[] = [];
  let used = 0;
  for (;;) {
    const groupSize = Math.min(GROUP, limit + 1 - rows.length);
    const group = await read(from + rows.length, groupSize);
    for (const event of group) {
      used += JSON.stringify(event).length;
      if (rows.length === limit || (rows.length > 0 && used > bytes)) return { rows, more: true };
      rows.push(event);
    }
    if (group.length < groupSize) return { rows, more: false };
  }
}

/**
 * A page of a session's events as recorded, oldest first, after revision `after`. Each protected
 * text comes with its salt and its commitment. Errors: `session_not_found`, `session_erased`,
 * `stream_damaged` (noted) if the page or the beginning of the stream is incomplete, or if the
 * stream ends for some seconds before the revision in the read models; `key_missing`,
 * `store_unavailable`.
 */
export async function readSessionEvents(
  source: SessionSource,
  accountId: string,
  sessionId: string,
  page: NumberedPage,
): Promise<PageOf<RecordedEvent>> {
  const row = await findOwnSession(source, accountId, sessionId);
  if (row.status === 'erased') throw sessionErasedError();
  return readEvents(source, row, page);
}

/**
 * The same events without their texts, only with the commitments. Works for erased sessions, and
 * does not check the account. Errors: those of readSessionEvents, except `session_not_found` and
 * `session_erased`.
 */
export async function readCommitments(
  source: SessionSource,
  row: SessionRow,
  page: NumberedPage,
): Promise<PageOf<RecordedEvent>> {
  const { rows, more } = await readEvents(source, row, page);
  return { rows: rows.map((event) => ({ ...event, data: mapTexts(event.data, withheld) })), more };
}

/** Where sessions are read. */
export type SessionSource = StreamSource & { readModels: Pick<ReadModels, 'findSession'> };

/** A session of the account. Errors: `session_not_found`, `store_unavailable`. */
export async function findOwnSession(
  { readModels }: SessionSource,
  accountId: string,
  sessionId: string,
): Promise<SessionRow> {
  const row = await readModels.findSession(sessionId);
  if (row?.account_id !== accountId) throw sessionNotFound();
  return row;
}

async function readEvents(
  source: SessionSource,
  { session_id, revision: visibleRevision }: SessionRow,
  page: NumberedPage,
): Promise<PageOf<RecordedEvent>> {
  const stream = sessionStream(session_id);
  const from = page.after === undefined ? 0 : page.after + 1;
  const read: ReadGroup = async (first, limit) => {
    const events = await readPage(source, stream, { direction: 'forwards', from: first, limit });
    return withLostKeyReports(source, stream, () =>
      discloseEvents(
        source.store.keys,
        events.map(({ stored }) => stored),
      ),
    );
  };
  const lastOf = ({ rows }: PageOf<RecordedEvent>): number => rows.at(-1)?.revision ?? from - 1;

  async function look(): Promise<PageOfStream> {
    const [events, beginning] = await Promise.all([
      readInGroups(read, from, page),
      from > 0 ? read(0, 1) : undefined,
    ]);
    return { page: events, beginning };
  }

  function missing({ page: events, beginning }: PageOfStream): StreamFlaw | undefined {
    if (beginning?.length === 0) return { reason: 'its beginning is missing', revision: 0 };
    const next = lastOf(events) + 1;
    return events.more || next > visibleRevision
      ? undefined
      : { reason: `revision ${next} is missing`, revision: next };
  }

  const { page: events } = await readUntilComplete(source, stream, {
    read: look,
    findFlaw: missing,
  });
  source.damaged.clear(stream, { from, to: lastOf(events) });
  return events;
}
