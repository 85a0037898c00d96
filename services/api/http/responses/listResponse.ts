import { randomUUID } from 'node:crypto';
import { LIMITS } from '../../../../shared/limits.ts';
import type { PageOf } from '../../../../shared/ports/readModels.ts';
import {
  yieldToEventLoop,
  SLICE_BYTES,
} from '../../../../shared/lib/concurrency/yieldToEventLoop.ts';
import { releaseBuffer } from '../../../../shared/lib/memory/releaseBuffer.ts';
import { SLICE_CHARS, textAsJson } from '../../../../shared/lib/slices.ts';
import { jsonText, successEnvelope } from './envelope.ts';

/** The text of an answer, to be written row by row. */
interface JsonListWriter {
  head: string;
  /** One row and the text before it, in pieces: texts of megabytes are not written as a whole. */
  row: (value: unknown, isFirst: boolean) => Iterable<string>;
  /** What comes after the rows, if there are any. */
  tail: (isEmpty: boolean) => string;
}

/** Random, so that it is in no row. */
const PLACE = randomUUID();

/** Without an array of the members of each object, which would be as much garbage as their JSON. */
function hasLongText(value: unknown): boolean {
  if (typeof value === 'string') return value.length > SLICE_CHARS;
  if (typeof value !== 'object' || value === null) return false;
  const members = value as Readonly<Record<string, unknown>>;
  for (const name in members)
    if (Object.hasOwn(members, name) && hasLongText(members[name])) return true;
  return false;
}

/** The JSON of a value in small pieces. `layout` changes the text apart from long strings. */
function* piecesOf(
  value: unknown,
  layout: (json: string) => string,
  indent?: number,
): Generator<string> {
  if (!hasLongText(value)) {
    yield layout(JSON.stringify(value, null, indent));
    return;
  }
  const texts: string[] = [];
  const withPlaces = JSON.stringify(
    value,
    (_name, member: unknown) => {
      if (typeof member !== 'string' || member.length <= SLICE_CHARS) return member;
      texts.push(member);
      return PLACE;
    },
    indent,
  );
  for (const [at, piece] of layout(withPlaces).split(`"${PLACE}"`).entries()) {
    if (at > 0) yield* textAsJson(texts[at - 1]!);
    yield piece;
  }
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
      row: (value, isFirst) => piecesOf(value, (json) => (isFirst ? json : `,${json}`)),
      tail: () => after,
    };
  const outer = `\n${/^ */.exec(head.slice(head.lastIndexOf('\n') + 1))![0]}`;
  const inner = `${outer}  `;
  return {
    head,
    // A line break inside of a text is written as \n: these are the ones between members.
    row: (value, isFirst) =>
      piecesOf(
        value,
        (json) => (isFirst ? inner : `,${inner}`) + json.replaceAll('\n', inner),
        INDENT,
      ),
    tail: (isEmpty) => (isEmpty ? after : outer + after),
  };
}

const INDENT = 2;

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

/** Encodes pieces together, so that large buffers result, whose memory can be freed at once. */
function encodedPieces(pieces: Iterable<string>): Buffer<ArrayBuffer>[] {
  const encoded: Buffer<ArrayBuffer>[] = [];
  let pending = '';
  for (const piece of pieces) {
    pending += piece;
    if (pending.length < SLICE_BYTES / 2) continue;
    encoded.push(Buffer.from(pending));
    pending = '';
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
    const ofRow = encodedPieces(text.row(present(row), last === undefined));
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

/** Renders the response with one object. */
export const renderOne = (data: object, { pretty }: RenderOptions): Promise<RenderedPage> =>
  Promise.resolve({
    body: Buffer.from(jsonText(successEnvelope(data), pretty)),
    nextCursor: undefined,
  });

const DEFAULT_PAGE_ENTRIES = 100;

/** The page that a request asks for, without undefined members. */
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
