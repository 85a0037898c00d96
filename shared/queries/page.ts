/** A page of rows, and the key to continue after when there are more. */
export interface PageOf<Row> {
  rows: Row[];
  next: string | undefined;
}

/** Asks for one row more than the page holds: that is how it is known whether another page follows. */
export async function pageOf<Row>(limit: number, keyOf: (row: Row) => string, read: (limit: number) => Promise<Row[]>): Promise<PageOf<Row>> {
  const rows = await read(limit + 1);
  const page = rows.slice(0, limit);
  return { rows: page, next: rows.length > limit ? keyOf(page.at(-1)!) : undefined };
}
