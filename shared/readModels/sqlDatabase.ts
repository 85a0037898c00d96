/**
 * The interface of a database that read models are queried from. Queries are written once, in the
 * folder of their feature, in SQL that SQLite and PostgreSQL both understand: `{name}` stands for a
 * table and `?` for the next parameter. `{name INDEXED BY index}` is a table that SQLite reads by this
 * index: it keeps no statistics and may prefer an index with more entries. Each function compiles its
 * statement once and returns the function that runs it.
 */
import type { Page, PageOf, Bounds } from './page.ts';
import type { Rows, TableName } from './tables.ts';
import type { ListedSession, WordSearch } from '../search/turnIndex.ts';

export type Parameter = string | number | null;

/** Rows of one table, in the order of a column that also continues a page. */
export interface Listing<Name extends TableName = TableName> {
  table: Name;
  /** The columns that are read; a page's rows have no others. All when absent. */
  columns?: readonly string[];
  /** For FROM, with the table under its name; only the table when absent. */
  from?: string;
  /** Unique among the rows that `where` selects. */
  key: string;
  where: string;
  descending?: boolean;
  /** True if the rows are few and are found in another order. */
  isSorted?: boolean;
}

/** As `Page`, for keys of any type. */
export type KeyedPage = Bounds & { after?: Exclude<Parameter, null> };

/** A statement and its parameters. */
export interface Query {
  sql: string;
  parameters: readonly Parameter[];
}

/** Reads a page; the parameters are those of the listing's `where`. */
type ReadPageOf<Row> = (parameters: readonly Parameter[], page: KeyedPage) => Promise<PageOf<Row>>;

/** A row and a page of rows that belong to it. */
interface RowWithPage<Row, Paged> {
  row: Row;
  page: PageOf<Paged>;
}

/** All reads reject with `store_unavailable` when the read models can't be read. */
export interface SqlDatabase {
  /** SQL expression: the number of the generation that answers. */
  generation: string;
  /**
   * SQL condition that excludes rows of the table that an erasure has hidden until they are deleted. `owner`
   * is SQL for the owner of these rows, by default its column.
   */
  isShown(table: TableName, owner?: string): string;
  /** Rows as the driver returns them: booleans and JSON are not converted. */
  query<Row extends object>(sql: string): (...parameters: Parameter[]) => Promise<Row[]>;
  /**
   * Runs a query and the one that `derive` makes of its rows. SQLite reads both as of one moment;
   * in PostgreSQL each statement has its own snapshot.
   */
  queryTwice<First extends object, Second extends object>(
    first: Query,
    derive: (rows: First[]) => Query,
  ): Promise<[First[], Second[]]>;
  /** The first row of the table; `clauses` follow its name. */
  find<Name extends TableName>(
    table: Name,
    clauses: string,
  ): (...parameters: Parameter[]) => Promise<Rows[Name] | undefined>;
  list<Name extends TableName>(
    table: Name,
    clauses: string,
  ): (...parameters: Parameter[]) => Promise<Rows[Name][]>;
  page<Name extends TableName>(listing: Listing<Name>): ReadPageOf<Rows[Name]>;
  /** Reads a row and, if it exists, a page, both as of one moment. */
  findWithPage<Name extends TableName, Paged extends TableName>(
    row: { table: Name; where: string },
    listing: Listing<Paged>,
  ): (
    rowParameters: readonly Parameter[],
    parameters: readonly Parameter[],
    page: KeyedPage,
  ) => Promise<RowWithPage<Rows[Name], Rows[Paged]> | undefined>;
  /**
   * The same for queries that take milliseconds, where they do not occupy the event loop. Accounts
   * take turns.
   */
  background(accountId: string): Pick<SqlDatabase, 'query' | 'page'>;
  /** Full-text search, by the means of the database. Throws the abort reason. */
  searchSessions(
    accountId: string,
    search: Page & WordSearch,
    signal?: AbortSignal,
  ): Promise<PageOf<ListedSession>>;
}
