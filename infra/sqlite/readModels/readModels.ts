import type { Checkpoint, Position } from '../../../shared/ports/eventStore.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { ProgressSource } from '../../../shared/projections/progress.ts';
import { createPage, type Bounds, type PageOf } from '../../../shared/readModels/page.ts';
import { createReadModelQueries } from '../../../shared/readModels/queries.ts';
import type {
  KeyedPage,
  Listing,
  Parameter,
  Query,
  SqlDatabase,
} from '../../../shared/readModels/sqlDatabase.ts';
import { TABLES, type Rows, type TableName } from '../../../shared/readModels/tables.ts';
import { isShown } from './erasure/pendingRemovals.ts';
import { createFollower, type GenerationReader } from './generationReader.ts';
import { createWordSearch } from './searchSessions.ts';
import { createReaderThread, type ReaderThread } from './background/readerThread.ts';
import {
  bytesOfRow,
  rowDecoder,
  selectListing,
  sqliteSql,
  type BoundedQuery,
  type SqliteRow,
} from './statements.ts';
import { SELECT_CHECKPOINT } from './verification.ts';
import { HOLDS_ERASED } from './wordIndex.ts';

type Current = () => GenerationReader;

type Decoders = { [Name in TableName]: (row: SqliteRow) => Rows[Name] };

const DECODERS = Object.fromEntries(
  Object.entries(TABLES).map(([name, table]) => [name, rowDecoder(table)]),
) as Decoders;

/** The query of a page of a list. */
function pageQuery(listing: Listing) {
  const statements: { first?: string; next?: string } = {};
  return (parameters: readonly Parameter[], { after, limit, bytes }: KeyedPage): BoundedQuery => {
    const isContinued = after !== undefined;
    const sql = (statements[isContinued ? 'next' : 'first'] ??= selectListing(
      listing,
      isContinued,
    ));
    return { sql, parameters: [...parameters, ...(isContinued ? [after] : [])], limit, bytes };
  };
}

/** The page of the rows that its query has found. */
function pageOfRows<Name extends TableName>(
  table: Name,
  rows: Iterable<SqliteRow>,
  bounds: Bounds,
): PageOf<Rows[Name]> {
  const decode = DECODERS[table];
  const { page, add } = createPage<Rows[Name]>(bounds);
  for (const row of rows) if (!add(bytesOfRow(row), () => decode(row))) break;
  return page;
}

/** Reads pages of a list, one row beyond the page at most. */
function pageReader<Name extends TableName>(current: Current, listing: Listing<Name>) {
  const queryOf = pageQuery(listing);
  return (given: readonly Parameter[], page: KeyedPage): PageOf<Rows[Name]> => {
    const { sql, parameters } = queryOf(given, page);
    return pageOfRows(listing.table, current().iterate(sql, ...parameters), page);
  };
}

/** No bound, for queries with a LIMIT. */
const UNBOUNDED = { limit: Infinity, bytes: Infinity };

/** Queries in the thread, on behalf of an account. */
const backgroundQueries = (
  { read }: ReaderThread,
  accountId: string,
): Pick<SqlDatabase, 'query' | 'page'> => ({
  query<Row extends object>(text: string) {
    const sql = sqliteSql(text);
    return async (...parameters: Parameter[]) =>
      (await read({ sql, parameters, ...UNBOUNDED }, accountId)).answer as Row[];
  },
  page(listing) {
    const queryOf = pageQuery(listing);
    return async (parameters, page) =>
      pageOfRows(listing.table, (await read(queryOf(parameters, page), accountId)).answer, page);
  },
});

const createSqliteDatabase = (
  current: Current,
  thread: ReaderThread,
  searchSessions: SqlDatabase['searchSessions'],
): SqlDatabase => ({
  generation: 'generation()',
  isShown,
  query<Row extends object>(text: string) {
    const sql = sqliteSql(text);
    return async (...parameters: Parameter[]) => current().all(sql, ...parameters) as Row[];
  },
  async queryTwice<First extends object, Second extends object>(
    first: Query,
    derive: (rows: First[]) => Query,
  ) {
    const { all, snapshot } = current();
    return snapshot((): [First[], Second[]] => {
      const rows = all(sqliteSql(first.sql), ...first.parameters) as First[];
      const second = derive(rows);
      return [rows, all(sqliteSql(second.sql), ...second.parameters) as Second[]];
    });
  },
  find(table, clauses) {
    const sql = sqliteSql(`SELECT * FROM ${table} ${clauses}`);
    const decode = DECODERS[table];
    return async (...parameters) => {
      const row = current().get(sql, ...parameters);
      return row && decode(row);
    };
  },
  list(table, clauses) {
    const sql = sqliteSql(`SELECT * FROM ${table} ${clauses}`);
    const decode = DECODERS[table];
    return async (...parameters) =>
      current()
        .all(sql, ...parameters)
        .map(decode);
  },
  page(listing) {
    const read = pageReader(current, listing);
    return async (parameters, page) => read(parameters, page);
  },
  findWithPage({ table, where }, listing) {
    const sql = sqliteSql(`SELECT * FROM ${table} WHERE ${where}`);
    const decode = DECODERS[table];
    const read = pageReader(current, listing);
    return async (rowParameters, parameters, page) =>
      current().snapshot(() => {
        const row = current().get(sql, ...rowParameters);
        return row && { row: decode(row), page: read(parameters, page) };
      });
  },
  background: (accountId) => backgroundQueries(thread, accountId),
  searchSessions,
});

interface SqliteReadModels extends ReadModels {
  generation(): number;
  /** The event up to which they follow the log; undefined before the first one. */
  checkpoint(): Promise<Checkpoint | undefined>;
  /** Everything up to this position is shown; undefined before the first progress. */
  shown(): Position | undefined;
  /** True while the file holds rows or words of erased turns; no query returns them. */
  holdsErased(): Promise<boolean>;
  /** One sentence if a search has found this generation's word index damaged. */
  damagedWords(): string | undefined;
}

/**
 * The queries over the SQLite read models of `<folder>/read-models`, on a connection of the calling
 * thread. `progress` comes from the projector; until it has caught up once, every query rejects with
 * `store_unavailable`.
 */
export function openSqliteReadModels({
  folder,
  progress,
}: {
  folder: string;
  progress: ProgressSource;
}): SqliteReadModels {
  const { current, shown, untilShown, close } = createFollower(folder, progress);
  const thread = createReaderThread(folder, current);
  const words = createWordSearch(current, thread);
  const queries = createReadModelQueries(
    createSqliteDatabase(current, thread, words.searchSessions),
  );
  return {
    ...queries,
    async indexProgress(accountId) {
      const indexProgress = await queries.indexProgress(accountId);
      if (indexProgress.unindexed_from !== null) progress.requestIndex?.();
      return indexProgress;
    },
    generation: () => current().generation,
    checkpoint: async () => current().get(SELECT_CHECKPOINT) as Checkpoint | undefined,
    holdsErased: async () => current().get(HOLDS_ERASED)!['holds'] === 1,
    damagedWords: words.damage,
    shown,
    untilShown,
    async close() {
      await thread[Symbol.asyncDispose]();
      close();
    },
  };
}
