import type { Bounds, PageOf } from './page.ts';
import { createPage } from './page.ts';

/** Reads a list that follows an index, of which the list may leave out most entries. */
export interface SlicedList<Row> {
  /** The key of the nth entry of the index after a key; undefined if there are fewer. */
  nthKey(n: number, after: string | undefined): Promise<string | undefined>;
  /** A page of the list up to the entry `last`, which it includes, or up to the end. */
  read(page: Bounds & { after?: string }, last: string | undefined): Promise<PageOf<Row>>;
}

/** UTF-8 bytes of a row's text and JSON. */
const bytesOf = (row: object): number =>
  Object.values(row).reduce<number>((sum, value: unknown) => {
    if (typeof value === 'string') return sum + Buffer.byteLength(value);
    return typeof value === 'object' && value !== null
      ? sum + Buffer.byteLength(JSON.stringify(value))
      : sum;
  }, 0);

/**
 * Reads a page in slices of so many entries of the index, so that no step takes longer however few of
 * them are in the list. `slices` yields the list and the size of each slice. Throws the abort reason.
 */
export async function readInSlices<Row extends object>(
  slices: Iterable<{ list: SlicedList<Row>; entries: number }>,
  { after: start, ...bounds }: Bounds & { after?: string },
  signal: AbortSignal | undefined,
): Promise<PageOf<Row>> {
  const { page, add } = createPage<Row>(bounds);
  let after = start;
  for (const { list, entries } of slices) {
    signal?.throwIfAborted();
    const last = await list.nthKey(entries, after);
    const limit = bounds.limit + 1 - page.rows.length;
    const from = after === undefined ? {} : { after };
    const slice = await list.read({ ...from, limit, bytes: bounds.bytes }, last);
    for (const row of slice.rows) if (!add(bytesOf(row), () => row)) return page;
    if (slice.more) return { ...page, more: true };
    if (last === undefined) return page;
    after = last;
  }
  return page;
}
