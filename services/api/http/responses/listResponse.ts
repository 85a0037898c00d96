import { LIMITS } from '../../../../shared/limits.ts';
import type { PageOf } from '../../../../shared/ports/readModels.ts';
import { createJsonListWriter } from './jsonListWriter.ts';
import {
  yieldToEventLoop,
  SLICE_BYTES,
} from '../../../../shared/lib/concurrency/yieldToEventLoop.ts';

/** Who gets an answer, and how. */
export interface RenderOptions {
  account_id: string;
  pretty: boolean;
}

/** How rows become an answer. */
export interface ListFormat<Row> {
  /** The data without its rows: an empty list, or what has one as its last member. */
  emptyData: object;
  present: (row: Row) => unknown;
  /** The cursor that continues after the row. */
  cursorOf: (row: Row) => string;
}

export interface RenderedPage {
  body: Buffer;
  /** Where the next page goes on, if there is one. */
  nextCursor: string | undefined;
}

/** What is held at the most while rows become text. */
export const PAGE_BUFFER_BYTES = 3 * LIMITS.http.pageBytes;

/**
 * A page as it is sent. It ends before the row with which its text would go beyond the bound of a
 * page, since text in JSON is longer than it was, and says then where to go on.
 */
export async function renderPage<Row>(
  { rows, more }: PageOf<Row>,
  { emptyData, present, cursorOf }: ListFormat<Row>,
  { account_id, pretty }: RenderOptions,
): Promise<RenderedPage> {
  const text = createJsonListWriter(emptyData, pretty);
  const pieces = [Buffer.from(text.head)];
  let bytes = 0;
  let breath = SLICE_BYTES;
  let last: Row | undefined;
  let isCut = false;
  for (const row of rows) {
    const piece = Buffer.from(text.row(present(row), last === undefined));
    isCut = last !== undefined && bytes + piece.length > LIMITS.http.pageBytes;
    if (isCut) break;
    pieces.push(piece);
    bytes += piece.length;
    last = row;
    if (bytes < breath) continue;
    breath = bytes + SLICE_BYTES;
    await yieldToEventLoop(account_id);
  }
  pieces.push(Buffer.from(text.tail(last === undefined)));
  return {
    body: Buffer.concat(pieces),
    nextCursor: last !== undefined && (more || isCut) ? cursorOf(last) : undefined,
  };
}

const DEFAULT_PAGE_ENTRIES = 100;

/** A query's page as the queries take it: without members that are undefined. */
export const parsePageQuery = <Cursor>({
  limit = DEFAULT_PAGE_ENTRIES,
  after,
}: {
  limit?: number;
  after?: Cursor;
}): { limit: number; bytes: number; after?: Cursor } => ({
  limit,
  bytes: LIMITS.http.pageBytes,
  ...(after === undefined ? {} : { after }),
});

type ReadPage<Row> = (after: string | undefined) => Promise<PageOf<Row>>;

/** A whole list in pieces, page after page: it holds one page and one row's text at the most. */
export async function* renderList<Row>(
  read: ReadPage<Row>,
  { emptyData, present, cursorOf }: ListFormat<Row>,
  { account_id, pretty }: RenderOptions,
): AsyncGenerator<Buffer, void> {
  const text = createJsonListWriter(emptyData, pretty);
  let pending = text.head;
  let last: string | undefined;
  for (let more = true; more;) {
    await yieldToEventLoop(account_id);
    const page = await read(last);
    for (const row of page.rows) {
      pending += text.row(present(row), last === undefined);
      last = cursorOf(row);
      if (pending.length < SLICE_BYTES) continue;
      yield* encodeInChunks(pending, account_id);
      pending = '';
    }
    more = page.more;
  }
  yield* encodeInChunks(pending + text.tail(last === undefined), account_id);
}

/** A text as bytes, a piece at a time, between which others have their turn. */
export async function* encodeInChunks(
  text: string,
  account_id: string,
): AsyncGenerator<Buffer, void> {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; from += SLICE_BYTES) {
    yield bytes.subarray(from, from + SLICE_BYTES);
    // A client that takes all at once would have the process to itself.
    await yieldToEventLoop(account_id);
  }
}
