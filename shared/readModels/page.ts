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
    /** Adds the row if its bytes fit; false, and `more`, for the first row beyond the page. */
    add(size: number, toRow: () => Row): boolean {
      used += size;
      page.more = page.rows.length === limit || (page.rows.length > 0 && used > bytes);
      if (!page.more) page.rows.push(toRow());
      return !page.more;
    },
  };
}
