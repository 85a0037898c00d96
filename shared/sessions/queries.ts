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

/** `session_not_found`: the same where there is none and where it is another account's. */
export const sessionNotFound = (): TurnlogError =>
  new TurnlogError('session_not_found', 'There is no such session.');

export type NumberedPage = Bounds & { after?: number };

/**
 * What one look at a page of a stream showed, and the event at revision 0 where the page does not
 * begin there.
 */
interface PageOfStream {
  page: PageOf<RecordedEvent>;
  beginning: RecordedEvent[] | undefined;
}

/** Events that are read at a time: each may have a megabyte. */
const GROUP = 8;

type ReadGroup = (from: number, limit: number) => Promise<RecordedEvent[]>;

/** Reads a page, a group of events at a time, and no more than one group beyond it. */
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
 * A page of a session's events as they were recorded, oldest first, after revision `after`; each
 * protected text with its salt and its commitment.
 * Errors: `session_not_found`, `session_erased`, `stream_damaged` (noted) where the page, or the beginning of the
 * stream, is not whole, or the stream ends, for some seconds, before what the read models have seen
 * of it; `key_missing`, `store_unavailable`.
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
 * The same events with none of their texts, only what commits to them: of an erased session too.
 * Errors: as above, but for whose session it is.
 */
export async function readCommitments(
  source: SessionSource,
  row: SessionRow,
  page: NumberedPage,
): Promise<PageOf<RecordedEvent>> {
  const { rows, more } = await readEvents(source, row, page);
  return { rows: rows.map((event) => ({ ...event, data: mapTexts(event.data, withheld) })), more };
}

/** What sessions are read from. */
export type SessionSource = StreamSource & { readModels: Pick<ReadModels, 'findSession'> };

/** A session of the account. Errors: `session_not_found`. */
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
  { session_id, revision: shown }: SessionRow,
  page: NumberedPage,
): Promise<PageOf<RecordedEvent>> {
  const stream = sessionStream(session_id);
  const from = page.after === undefined ? 0 : page.after + 1;
  const read: ReadGroup = async (first, limit) => {
    const known = await readPage(source, stream, { direction: 'forwards', from: first, limit });
    return withLostKeyReports(source, stream, () =>
      discloseEvents(
        source.store.keys,
        known.map(({ stored }) => stored),
      ),
    );
  };
  const lastOf = ({ rows }: PageOf<RecordedEvent>): number => rows.at(-1)?.revision ?? from - 1;

  async function look(): Promise<PageOfStream> {
    const [found, beginning] = await Promise.all([
      readInGroups(read, from, page),
      from > 0 ? read(0, 1) : undefined,
    ]);
    return { page: found, beginning };
  }

  function missing({ page: found, beginning }: PageOfStream): StreamFlaw | undefined {
    if (beginning?.length === 0) return { reason: 'its beginning is missing', revision: 0 };
    const due = lastOf(found) + 1;
    return found.more || due > shown
      ? undefined
      : { reason: `revision ${due} is missing`, revision: due };
  }

  const { page: found } = await readUntilComplete(source, stream, {
    read: look,
    findFlaw: missing,
  });
  source.damaged.clear(stream, { from, to: lastOf(found) });
  return found;
}
