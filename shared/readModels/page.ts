/** The size of a page: it ends before the row that would exceed either bound. */
export interface Bounds {
  /** The most rows, ≥ 1. */
  limit: number;
  /** The most UTF-8 bytes of the rows' text and JSON; a larger row is a page by itself. */
  bytes: number;
}

export interface Page extends Bounds {
  /** Exclusive start: the key of the last row of the previous page. */
  after?: string;
}

export interface PageOf<Row> {
  rows: Row[];
  /** True when another row follows. */
  more: boolean;
}

/** Collects the rows of one page. */
export function createPage<Row>({ limit, bytes }: Bounds) {
  const page: PageOf<Row> = { rows: [], more: false };
  let used = 0;
  return {
    page,
    /** True when no further row fits, whatever its size. */
    isFull: (): boolean => page.rows.length === limit || used >= bytes,
    /** The bounds that remain. */
    remaining: (): Bounds => ({ limit: limit - page.rows.length, bytes: bytes - used }),
    /** Adds the row if it fits; false, and `more`, for the first row beyond the page. */
    add(row: Row, size: number): boolean {
      used += size;
      page.more = page.rows.length === limit || (page.rows.length > 0 && used > bytes);
      if (!page.more) page.rows.push(row);
      return !page.more;
    },
  };
}
