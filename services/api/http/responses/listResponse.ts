import { LIMITS } from '../../../../shared/limits.ts';
import type { PageOf } from '../../../../shared/ports/readModels.ts';
import {
  yieldToEventLoop,
  SLICE_BYTES,
} from '../../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { releaseBuffer } from '../../../../shared/lib/memory/releaseBuffer.ts';
import { jsonSlices, prettyJsonSlices } from '../../../../shared/lib/slices.ts';
import { jsonText, successEnvelope } from './envelope.ts';

/** The text of an answer, to be written row by row. */
interface JsonListWriter {
  head: string;
  /** One row and the text before it, in pieces: texts of megabytes are not written as a whole. */
  row: (value: unknown, isFirst: boolean) => Iterable<string>;
  /** The text after the rows. */
  tail: (isEmpty: boolean) => string;
}

function* prefixed(prefix: string, pieces: Iterable<string>): Generator<string> {
  if (prefix !== '') yield prefix;
  yield* pieces;
}

/**
 * Takes an answer whose rows are not there yet apart: `data` is an empty list, or has one as its
 * last member. Together the parts are what `JSON.stringify` makes of the answer with its rows.
 */
export function createJsonListWriter(
  data: object,
  pretty: boolean,
  beside: object = {},
): JsonListWriter {
  const text = jsonText({ ...successEnvelope(data), ...beside }, pretty);
  const end = text.lastIndexOf('[]') + 1;
  const after = text.slice(end);
  const head = text.slice(0, end);
  if (!pretty)
    return {
      head,
      row: (value, isFirst) => prefixed(isFirst ? '' : ',', jsonSlices(value)),
      tail: () => after,
    };
  const outer = `\n${/^ */.exec(head.slice(head.lastIndexOf('\n') + 1))![0]}`;
  const inner = `${outer}  `;
  return {
    head,
    row: (value, isFirst) =>
      prefixed(isFirst ? inner : `,${inner}`, prettyJsonSlices(value, inner)),
    tail: (isEmpty) => (isEmpty ? after : outer + after),
  };
}

/** The account that a response is for, and its layout. */
export interface RenderOptions {
  account_id: string;
  pretty: boolean;
}

/** How rows become a response. */
export interface ListFormat<Row> {
  /** The data without rows: an empty list, or an object whose last member is one. */
  emptyData: object;
  present: (row: Row) => unknown;
  /** The cursor that continues after the row. */
  cursorOf: (row: Row) => string;
  /** Further members of the envelope, without lists. */
  envelope?: object | undefined;
}

export interface RenderedPage {
  body: Buffer;
  /** The cursor of the next page, if there is one. */
  nextCursor: string | undefined;
}

/**
 * Encodes pieces together, so that large buffers result, whose memory can be freed at once. Yields to
 * the event loop between slices.
 */
async function encodePieces(
  pieces: Iterable<string>,
  account_id: string,
): Promise<Buffer<ArrayBuffer>[]> {
  const encoded: Buffer<ArrayBuffer>[] = [];
  let pending = '';
  for (const piece of pieces) {
    pending += piece;
    if (pending.length < SLICE_BYTES / 2) continue;
    encoded.push(Buffer.from(pending));
    pending = '';
    if (encoded.length % 2 === 0) await yieldToEventLoop(account_id);
  }
  if (pending !== '') encoded.push(Buffer.from(pending));
  return encoded;
}

/** The most memory that rendering a page takes. */
export const PAGE_BUFFER_BYTES = 3 * LIMITS.http.pageBytes;

/**
 * Renders a page. It ends early, with a cursor, before a row whose JSON, which is longer than the
 * text that was read, would exceed the size limit of a page.
 */
export async function renderPage<Row>(
  { rows, more }: PageOf<Row>,
  { emptyData, present, cursorOf, envelope }: ListFormat<Row>,
  { account_id, pretty }: RenderOptions,
): Promise<RenderedPage> {
  const text = createJsonListWriter(emptyData, pretty, envelope);
  const pieces = [Buffer.from(text.head)];
  let bytes = 0;
  let yieldAtBytes = SLICE_BYTES;
  let last: Row | undefined;
  let isCut = false;
  for (const row of rows) {
    const ofRow = await encodePieces(text.row(present(row), last === undefined), account_id);
    const rowBytes = ofRow.reduce((sum, { length }) => sum + length, 0);
    isCut = last !== undefined && bytes + rowBytes > LIMITS.http.pageBytes;
    if (isCut) break;
    pieces.push(...ofRow);
    bytes += rowBytes;
    last = row;
    if (bytes < yieldAtBytes) continue;
    yieldAtBytes = bytes + SLICE_BYTES;
    await yieldToEventLoop(account_id);
  }
  pieces.push(Buffer.from(text.tail(last === undefined)));
  const body = Buffer.concat(pieces);
  pieces.forEach(releaseBuffer);
  return {
    body,
    nextCursor: last !== undefined && (more || isCut) ? cursorOf(last) : undefined,
  };
}

/** The JSON of a value, which may be large, in slices; like `jsonText`. */
export async function encodeJson(
  value: object,
  { account_id, pretty }: RenderOptions,
): Promise<Buffer> {
  const slices = pretty ? prettyJsonSlices(value) : jsonSlices(value);
  const pieces = await encodePieces(slices, account_id);
  if (pretty) pieces.push(Buffer.from('\n'));
  const body = Buffer.concat(pieces);
  pieces.forEach(releaseBuffer);
  return body;
}

/** Renders the response with one object. */
export const renderOne = async (data: object, options: RenderOptions): Promise<RenderedPage> => ({
  body: await encodeJson(successEnvelope(data), options),
  nextCursor: undefined,
});

const DEFAULT_PAGE_ENTRIES = 100;

/** The requested page, without undefined members. */
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

/** Renders a whole list page by page, holding one page and a slice of its text. */
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
      for (const piece of text.row(present(row), last === undefined)) {
        pending += piece;
        if (pending.length < SLICE_BYTES) continue;
        yield* encodeInChunks(pending, account_id);
        pending = '';
      }
      last = cursorOf(row);
    }
    more = page.more;
  }
  yield* encodeInChunks(pending + text.tail(last === undefined), account_id);
}

/** Encodes a text in chunks, yielding to the event loop between them. */
export async function* encodeInChunks(
  text: string,
  account_id: string,
): AsyncGenerator<Buffer, void> {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; from += SLICE_BYTES) {
    yield bytes.subarray(from, from + SLICE_BYTES);
    // A client that reads fast would otherwise block other requests.
    await yieldToEventLoop(account_id);
  }
}
