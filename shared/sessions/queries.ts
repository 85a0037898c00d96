import { isOwnStream } from '../eventlog/reading/streamOwner.ts';
import { sessionErasedError } from '../erasure/errors.ts';
import { TurnlogError } from '../lib/errors/turnlogError.ts';
import type { RecordedEvent } from '../eventlog/event.ts';
import { decodeDisclosedEvent } from '../eventlog/encryption/openTexts.ts';
import type { StreamSource } from '../eventlog/reading/reportDamage.ts';
import { readPage } from '../eventlog/reading/readWhole.ts';
import { isFull, type DecodedEvent } from '../eventlog/reading/wholeStream.ts';
import type { StreamFlaw } from '../eventlog/reading/streamDamage.ts';
import { sessionStream } from '../eventlog/streams.ts';
import { readUntilComplete } from '../eventlog/reading/readUntilComplete.ts';
import { mapTexts, withholdText } from '../transparency/proof/shownTexts.ts';
import type { SessionRow } from '../readModels/tables.ts';
import { createPause, mapInSlices, SLICE_BYTES } from '../lib/concurrency/yieldToEventLoop.ts';
import { jsonLength } from '../lib/validation/jsonComplexity.ts';
import type { Bounds, PageOf, ReadModels } from '../ports/readModels.ts';

/** The same error for an unknown session and for one of another account. */
export const sessionNotFoundError = (): TurnlogError =>
  new TurnlogError('session_not_found', 'There is no such session.');

export type NumberedPage = Bounds & { after?: number };

/** A page of a stream, and the event at revision 0 if the page starts later. */
interface PageOfStream {
  page: PageOf<RecordedEvent>;
  beginning: readonly DecodedEvent[] | undefined;
}

/** Events read at a time. */
const GROUP = 32;

/** Consecutive events of a stream, and whether the read may have ended before more of them. */
interface GroupOfEvents {
  events: RecordedEvent[];
  mayHaveMore: boolean;
}

const FIRST_EVENT = { direction: 'forwards', from: 0, limit: 1 } as const;

type ReadGroup = (from: number, limit: number) => Promise<GroupOfEvents>;

/** Reads a page in groups of events, with at most one group beyond it. */
async function readInGroups(
  read: ReadGroup,
  { limit, bytes }: Bounds,
  { from, accountId }: { from: number; accountId: string },
): Promise<PageOf<RecordedEvent>> {
  const rows: RecordedEvent[] = [];
  const pause = createPause(() => accountId);
  let used = 0;
  for (;;) {
    const { events, mayHaveMore } = await read(
      from + rows.length,
      Math.min(GROUP, limit + 1 - rows.length),
    );
    for (const event of events) {
      used += jsonLength(event);
      if (rows.length === limit || (rows.length > 0 && used > bytes)) return { rows, more: true };
      rows.push(event);
    }
    if (!mayHaveMore) return { rows, more: false };
    await pause();
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
  return readEvents(source, row, page, { rejectsErased: true });
}

const withoutTexts = (event: RecordedEvent): RecordedEvent => ({
  ...event,
  data: mapTexts(event.data, withholdText),
});

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
  const { rows, more } = await readEvents(source, row, page, { rejectsErased: false });
  return { rows: await mapInSlices(row.account_id, rows, withoutTexts), more };
}

export type SessionSource = StreamSource & { readModels: Pick<ReadModels, 'findSession'> };

/**
 * A session of the account, by its row and by the log: an account with write access to the rows must
 * not be shown the texts of others. Errors: `session_not_found`, `store_unavailable`.
 */
export async function findOwnSession(
  { readModels, store }: SessionSource,
  accountId: string,
  sessionId: string,
): Promise<SessionRow> {
  const row = await readModels.findSession(sessionId);
  if (row?.account_id !== accountId) throw sessionNotFoundError();
  const isOwn = await isOwnStream({ store }, accountId, sessionStream(sessionId), async () => row);
  if (!isOwn) throw sessionNotFoundError();
  return row;
}

async function readEvents(
  source: SessionSource,
  { account_id, session_id, revision: visibleRevision }: SessionRow,
  page: NumberedPage,
  { rejectsErased }: { rejectsErased: boolean },
): Promise<PageOf<RecordedEvent>> {
  const stream = sessionStream(session_id);
  const from = page.after === undefined ? 0 : page.after + 1;
  const read: ReadGroup = async (first, limit) => {
    // Its last event may still have a megabyte: readPage yields after checking that.
    const group = { direction: 'forwards', from: first, limit, maxBytes: SLICE_BYTES } as const;
    const decoded = await readPage(source, stream, group);
    // The row may not show an erasure that has begun yet.
    if (rejectsErased && decoded.some(({ recorded }) => recorded.erased))
      throw sessionErasedError();
    const events = decoded.map(({ readable }) => decodeDisclosedEvent(readable));
    const stored = decoded.map((event) => event.stored);
    return { events, mayHaveMore: isFull({ ...group, events: stored }) };
  };
  const lastOf = ({ rows }: PageOf<RecordedEvent>): number => rows.at(-1)?.revision ?? from - 1;

  async function look(): Promise<PageOfStream> {
    const [events, beginning] = await Promise.all([
      readInGroups(read, page, { from, accountId: account_id }),
      from > 0 ? readPage(source, stream, FIRST_EVENT) : undefined,
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
