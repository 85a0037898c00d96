import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { ProgressSource } from '../../../shared/projections/progress.ts';
import { createPage } from '../../../shared/readModels/page.ts';
import { createReadModelQueries } from '../../../shared/readModels/queries.ts';
import type {
  KeyedPage,
  Listing,
  Parameter,
  Query,
  SqlDatabase,
} from '../../../shared/readModels/sqlDatabase.ts';
import { TABLES, type Rows, type TableName } from '../../../shared/readModels/tables.ts';
import { createFollower, type GenerationReader } from './generationReader.ts';
import { createWordSearch } from './searchSessions.ts';
import { bytesOfRow, rowDecoder, selectListing, sqliteSql, type SqliteRow } from './statements.ts';
import { HOLDS_ERASED } from './wordIndex.ts';

type Current = () => GenerationReader;

type Decoders = { [Name in TableName]: (row: SqliteRow) => Rows[Name] };

const DECODERS = Object.fromEntries(
  Object.entries(TABLES).map(([name, table]) => [name, rowDecoder(table)]),
) as Decoders;

/** Reads pages of a list, one row beyond the page at most. */
function pageReader<Name extends TableName>(current: Current, listing: Listing<Name>) {
  const decode = DECODERS[listing.table];
  const statements: { first?: string; next?: string } = {};
  return (parameters: readonly Parameter[], { after, ...bounds }: KeyedPage) => {
    const { page, add } = createPage<Rows[Name]>(bounds);
    const isContinued = after !== undefined;
    const sql = (statements[isContinued ? 'next' : 'first'] ??= selectListing(listing, {
      isContinued,
    }));
    const rows = current().iterate(sql, ...parameters, ...(isContinued ? [after] : []));
    for (const row of rows) if (!add(bytesOfRow(row), () => decode(row))) break;
    return page;
  };
}

const createSqliteDatabase = (
  current: Current,
  searchSessions: SqlDatabase['searchSessions'],
): SqlDatabase => ({
  generation: 'generation()',
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
  searchSessions,
});

interface SqliteReadModels extends ReadModels {
  generation(): number;
  /** True while the index file holds words of erased turns; no search finds them. */
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
  const { current, untilShown, close } = createFollower(folder, progress);
  const words = createWordSearch(current);
  return {
    ...createReadModelQueries(createSqliteDatabase(current, words.searchSessions)),
    generation: () => current().generation,
    holdsErased: async () => current().get(HOLDS_ERASED)!['holds'] === 1,
    damagedWords: words.damage,
    untilShown,
    close: async () => close(),
  };
}
