/** How much to read: a page ends where the next row would go beyond either bound. */
export interface Bounds {
  /** The most rows, ≥ 1. */
  limit: number;
  /** The most UTF-8 bytes of the rows' text and JSON; a larger row is a page by itself. */
  bytes: number;
}

export interface Page extends Bounds {
  /** Exclusive start: the key of the last row of the page before. */
  after?: string;
}

export interface PageOf<Row> {
  rows: Row[];
  /** True when another row follows. */
  more: boolean;
}
