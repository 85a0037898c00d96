/** A page of rows, and the key to continue after when there are more. */
export interface PageOf<Row> {
  rows: Row[];
  next: string | undefined;
}

/**
 * Asks for one row more than the page holds: that is how it is known whether another page follows.
 */
export const oneMoreThan = (limit: number): number => limit + 1;

/** The page, of rows that were asked for with `oneMoreThan(limit)`. */
export function cutPage<Row>(
  limit: number,
  keyOf: (row: Row) => string,
  rows: readonly Row[],
): PageOf<Row> {
  const page = rows.slice(0, limit);
  return { rows: page, next: rows.length > limit ? keyOf(page.at(-1)!) : undefined };
}

/** Reads a page. */
export const pageOf = async <Row>(
  limit: number,
  keyOf: (row: Row) => string,
  read: (limit: number) => Promise<Row[]>,
): Promise<PageOf<Row>> => cutPage(limit, keyOf, await read(oneMoreThan(limit)));
