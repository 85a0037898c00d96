/** A page of a list that is read by cursors, and the place of its first row. */
export interface IndexedPage {
  /** The cursor that it is read with; the first page has none. */
  after: string | undefined;
  start: number;
}

/** The known pages of such a list. */
export interface PageIndex {
  pages: readonly IndexedPage[];
  /** How many rows are known. */
  count: number;
  /** Whether these are all rows. */
  isComplete: boolean;
}

export const EMPTY_INDEX: PageIndex = {
  pages: [{ after: undefined, start: 0 }],
  count: 0,
  isComplete: false,
};

/**
 * The index after a page was read. Only the last page extends it: an earlier one keeps its place,
 * so that the rows after it do not move.
 */
export function notePage(
  index: PageIndex,
  { after, start }: IndexedPage,
  { rows, next }: { rows: readonly unknown[]; next: string | undefined },
): PageIndex {
  const count = start + rows.length;
  const isComplete = next === undefined;
  const isLast = index.pages.at(-1)!.after === after;
  const isKnown = index.count === count && index.isComplete === isComplete;
  if (!isLast || (isComplete && isKnown)) return index;
  const pages = isComplete ? index.pages : [...index.pages, { after: next, start: count }];
  return { pages, count, isComplete };
}

/** The pages with rows from `start` to `end` (inclusive), or with the rows to read next. */
export function pagesWithin({ pages }: PageIndex, start: number, end: number): IndexedPage[] {
  const first = pages.findLastIndex((page) => page.start <= start);
  const last = pages.findLastIndex((page) => page.start <= end);
  return pages.slice(Math.max(first, 0), Math.max(last, 0) + 1);
}
