import { LIMITS } from '../../../../shared/limits.ts';
import type { PageOf } from '../../../../shared/ports/readModels.ts';
import { textAround } from './jsonListWriter.ts';
import {
  yieldToEventLoop,
  SLICE_BYTES,
} from '../../../../shared/lib/concurrency/yieldToEventLoop.ts';

/** Who gets an answer, and how. */
export interface Recipient {
  account_id: string;
  pretty: boolean;
}

/** How rows become an answer. */
export interface Rows<Row> {
  /** The data without its rows: an empty list, or what has one as its last member. */
  around: object;
  present: (row: Row) => unknown;
  /** The cursor that continues after the row. */
  cursorOf: (row: Row) => string;
}

export interface PageBody {
  body: Buffer;
  /** Where the next page goes on, if there is one. */
  next: string | undefined;
}

/** What is held at the most while rows become text. */
export const MAKING_BYTES = 3 * LIMITS.http.pageBytes;

/**
 * A page as it is sent. It ends before the row with which its text would go beyond the bound of a
 * page, since text in JSON is longer than it was, and says then where to go on.
 */
export async function pageBody<Row>(
  { rows, more }: PageOf<Row>,
  { around, present, cursorOf }: Rows<Row>,
  { account_id, pretty }: Recipient,
): Promise<PageBody> {
  const text = textAround(around, pretty);
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
    next: last !== undefined && (more || isCut) ? cursorOf(last) : undefined,
  };
}

type ReadPage<Row> = (after: string | undefined) => Promise<PageOf<Row>>;

/** A whole list in pieces, page after page: it holds one page and one row's text at the most. */
export async function* listPieces<Row>(
  read: ReadPage<Row>,
  { around, present, cursorOf }: Rows<Row>,
  { account_id, pretty }: Recipient,
): AsyncGenerator<Buffer, void> {
  const text = textAround(around, pretty);
  let pending = text.head;
  let last: string | undefined;
  for (let more = true; more;) {
    await yieldToEventLoop(account_id);
    const page = await read(last);
    for (const row of page.rows) {
      pending += text.row(present(row), last === undefined);
      last = cursorOf(row);
      if (pending.length < SLICE_BYTES) continue;
      yield* inPieces(pending, account_id);
      pending = '';
    }
    more = page.more;
  }
  yield* inPieces(pending + text.tail(last === undefined), account_id);
}

/** A text as bytes, a piece at a time, between which others have their turn. */
export async function* inPieces(text: string, account_id: string): AsyncGenerator<Buffer, void> {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; from += SLICE_BYTES) {
    yield bytes.subarray(from, from + SLICE_BYTES);
    // A client that takes all at once would have the process to itself.
    await yieldToEventLoop(account_id);
  }
}
