import type { Bounds, PageOf } from '../../../shared/ports/readModels.ts';
import type { Found } from './generationReader.ts';

/** UTF-8 bytes of a row's text. */
const bytesOf = (found: Found): number =>
  Object.values(found).reduce<number>(
    (sum, value) => (typeof value === 'string' ? sum + Buffer.byteLength(value) : sum),
    0,
  );

/** Takes rows until the page is full, or there are no more. */
function createPage<Row>({ limit, bytes }: Bounds, decode: (found: Found) => Row) {
  const page: PageOf<Row> = { rows: [], more: false };
  let read = 0;
  return {
    page,
    /** False where the row is the first that is not on the page any more. */
    take(found: Found): boolean {
      read += bytesOf(found);
      page.more = page.rows.length === limit || (page.rows.length > 0 && read > bytes);
      if (!page.more) page.rows.push(decode(found));
      return !page.more;
    },
  };
}

/** Reads one row beyond the page at the most. */
export function pageOf<Row>(
  bounds: Bounds,
  found: Iterable<Found>,
  decode: (found: Found) => Row,
): PageOf<Row> {
  const { page, take } = createPage(bounds, decode);
  for (const row of found) if (!take(row)) break;
  return page;
}

/** The same of rows that are found one after the other. */
export async function pageOfSearch<Row>(
  bounds: Bounds,
  found: AsyncIterable<Found>,
  decode: (found: Found) => Row,
): Promise<PageOf<Row>> {
  const { page, take } = createPage(bounds, decode);
  for await (const row of found) if (!take(row)) break;
  return page;
}
