import { AsyncLocalStorage } from 'node:async_hooks';
import { Pool, type QueryResultRow } from 'pg';
import { createFairSemaphore } from '../../../shared/lib/concurrency/fairSemaphore.ts';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint, Position } from '../../../shared/ports/eventStore.ts';
import type { ProjectorBeat, ReadModels } from '../../../shared/ports/readModels.ts';
import {
  createReadModelQueries,
  type ReadModelQueries,
} from '../../../shared/readModels/queries.ts';
import type {
  KeyedPage,
  Listing,
  Parameter,
  Query,
  SqlDatabase,
} from '../../../shared/readModels/sqlDatabase.ts';
import { TABLES, type Rows, type TableName } from '../../../shared/readModels/tables.ts';
import { connectionOptions } from '../connection.ts';
import { withDatabaseErrors, isMissing } from '../failures.ts';
import { lockIsHeldBy } from '../leases/locks.ts';
import { createFollower } from './follower.ts';
import { CHECKPOINT, slotKey, ROW } from './generations.ts';
import { VERSION } from './schema.ts';
import {
  columnsOf,
  pageParameters,
  postgresSql,
  selectPage,
  selectPageAtOnce,
  toPage,
  type ReadRows,
} from './statements.ts';
import { createSessionSearch } from './wordIndex.ts';

/** The server ends a query that takes longer, in milliseconds: its client has left by then. */
const STATEMENT_MS = 5000;
const IDLE_MS = 30_000;

/**
 * Queries that read many rows of the account in their first argument. Accounts take turns with them,
 * and one account uses at most half of the connections.
 */
const FAIR_QUERIES = [
  'listSessions',
  'listSessionRevisions',
  'findTranscript',
  'hasUnindexed',
  'sumUsage',
  'listAgents',
  'listReplays',
  'listWebhooks',
  'listApiKeys',
] as const;
/** Connections that these queries leave to others, such as look-ups of API keys and accounts. */
const KEPT_CONNECTIONS = 2;

type FairQueries = Pick<ReadModelQueries, (typeof FAIR_QUERIES)[number]>;
type QueryOfAccount = (accountId: string, ...rest: unknown[]) => Promise<unknown>;

/** The account of the fair query that runs. */
const currentAccount = new AsyncLocalStorage<string>();

const fairQueries = (queries: FairQueries): FairQueries =>
  Object.fromEntries(
    FAIR_QUERIES.map((name) => {
      const query = queries[name] as QueryOfAccount;
      const fairQuery: QueryOfAccount = (accountId, ...rest) =>
        currentAccount.run(accountId, query, accountId, ...rest);
      return [name, fairQuery];
    }),
  ) as unknown as FairQueries;

const ROW_KEY = slotKey({ version: VERSION, stage: 'live' });

function createPool(databaseUrl: string, poolSize: number): { rows: ReadRows; pool: Pool } {
  const pool = new Pool({
    ...connectionOptions(databaseUrl, { name: 'turnlog queries', statementMs: STATEMENT_MS }),
    max: poolSize,
    idleTimeoutMillis: IDLE_MS,
    allowExitOnIdle: true,
  });
  // Without a listener a broken idle connection would end the process. The pool has already dropped it.
  pool.on('error', () => undefined);
  const turns = createFairSemaphore('postgres_queries', {
    permits: Math.max(1, poolSize - KEPT_CONNECTIONS),
    bytes: Infinity,
  });
  async function acquireTurn(): Promise<Disposable | undefined> {
    const account_id = currentAccount.getStore();
    if (account_id === undefined) return undefined;
    const { signal } = new AbortController();
    const bounds = { waitMs: STATEMENT_MS, signal };
    return turns.acquire({ account_id }, bounds);
  }
  const rows = <Row extends QueryResultRow>(sql: string, parameters: readonly unknown[] = []) =>
    withDatabaseErrors(async (): Promise<Row[]> => {
      using _turn = await acquireTurn();
      // No stored text has a NUL, and the server refuses one as a parameter.
      if (parameters.some((parameter) => typeof parameter === 'string' && parameter.includes('\0')))
        return [];
      try {
        return (await pool.query<Row>(sql, [...parameters])).rows;
      } catch (error) {
        throw isMissing(error)
          ? storeUnavailableError('The read models are being built.', error)
          : error;
      }
    });
  return { rows, pool };
}

/** The two statements of a list: of its first page, and of a later one. */
const pageStatements = (listing: Listing): ((page: KeyedPage) => string) => {
  const select = listing.isSorted ? selectPageAtOnce : selectPage;
  const [first, next] = [select(listing, false), select(listing, true)];
  return ({ after }) => (after === undefined ? first : next);
};

const selectRows = (table: TableName): string =>
  `SELECT ${columnsOf(table, TABLES[table])} FROM {${table}}`;

const createPostgresDatabase = (rows: ReadRows): SqlDatabase => {
  const database: SqlDatabase = {
    generation: `(SELECT generation FROM turnlog.projections WHERE version = ${ROW_KEY[0]} AND slot = '${ROW_KEY[1]}')`,
    // Erasures delete all rows at once.
    isShown: () => 'true',
    query<Row extends object>(text: string) {
      const sql = postgresSql(text);
      return (...parameters: Parameter[]) => rows<Row>(sql, parameters);
    },
    async queryTwice<First extends object, Second extends object>(
      first: Query,
      derive: (rows: First[]) => Query,
    ): Promise<[First[], Second[]]> {
      const firstRows = await rows<First>(postgresSql(first.sql), first.parameters);
      const second = derive(firstRows);
      return [firstRows, await rows<Second>(postgresSql(second.sql), second.parameters)];
    },
    find<Name extends TableName>(table: Name, clauses: string) {
      const sql = postgresSql(`${selectRows(table)} ${clauses}`);
      return async (...parameters: Parameter[]) => (await rows<Rows[Name]>(sql, parameters))[0];
    },
    list<Name extends TableName>(table: Name, clauses: string) {
      const sql = postgresSql(`${selectRows(table)} ${clauses}`);
      return (...parameters: Parameter[]) => rows<Rows[Name]>(sql, parameters);
    },
    page<Name extends TableName>(listing: Listing<Name>) {
      const sqlOf = pageStatements(listing);
      return async (parameters: readonly Parameter[], page: KeyedPage) =>
        toPage(
          await rows<Rows[Name] & { read: number }>(sqlOf(page), pageParameters(parameters, page)),
        );
    },
    // In one statement, which sees one moment. No column has a type that JSON would change.
    findWithPage<Name extends TableName, Paged extends TableName>(
      { table, where }: { table: Name; where: string },
      listing: Listing<Paged>,
    ) {
      const sqlOf = pageStatements(listing);
      return async (
        rowParameters: readonly Parameter[],
        parameters: readonly Parameter[],
        page: KeyedPage,
      ) => {
        const paged = pageParameters(parameters, page);
        const row = postgresSql(`${selectRows(table)} WHERE ${where}`, paged.length + 1);
        const [result] = await rows<{ row: Rows[Name]; page: (Rows[Paged] & { read: number })[] }>(
          `SELECT to_json(found) AS row,
           (SELECT coalesce(json_agg(page), '[]') FROM (${sqlOf(page)}) AS page) AS page
         FROM (${row}) AS found`,
          [...paged, ...rowParameters],
        );
        return result && { row: result.row, page: toPage(result.page) };
      };
    },
    background: () => database,
    searchSessions: createSessionSearch(rows),
  };
  return database;
};

interface Options {
  databaseUrl: string;
  /** The most connections for queries; one more follows the projector. */
  poolSize?: number;
}

export interface PostgresReadModels extends ReadModels {
  /**
   * The checkpoint for which the read models are being rebuilt; undefined while they can be
   * trusted. Rejects with `store_unavailable`, as all queries do.
   */
  refusedCheckpoint(): Promise<Position | undefined>;
  /** The last event that the live read models show, which identifies their log; undefined without any. */
  checkpoint(): Promise<Checkpoint | undefined>;
  /** Why the projector does not follow the log, as last reported; undefined while it does. */
  logChanged(): string | undefined;
  /** The last report of the active projector; undefined before the first one. */
  projectorBeat(): Promise<ProjectorBeat | undefined>;
  /** True while a projector of another version is at work. */
  otherVersionWritten(): Promise<boolean>;
}

const LAST_BEAT = `SELECT lag_events, lag_ms,
  greatest(0, extract(epoch FROM clock_timestamp() - beaten_at) * 1000)::bigint AS silent_ms
  FROM turnlog.projector_beats WHERE version = $1`;

interface BeatRow {
  lag_events: number | null;
  lag_ms: number;
  silent_ms: number;
}

/**
 * The queries over the live read models in PostgreSQL. Opens without waiting for the server: queries
 * reject with `store_unavailable` while it can't be reached, and until a projector has caught up once.
 */
export function openPostgresReadModels({
  databaseUrl,
  poolSize = 10,
}: Options): PostgresReadModels {
  const { rows, pool } = createPool(databaseUrl, poolSize);
  const follower = createFollower(databaseUrl);
  let closing: Promise<void> | undefined;
  const queries = createReadModelQueries(createPostgresDatabase(rows));
  return {
    ...queries,
    ...fairQueries(queries),
    refusedCheckpoint: async () =>
      (await rows<{ refused: Position | null }>(`SELECT refused FROM ${ROW}`, ROW_KEY))[0]
        ?.refused ?? undefined,
    checkpoint: async () => (await rows<Checkpoint>(CHECKPOINT, ROW_KEY))[0],
    async projectorBeat() {
      const [beat] = await rows<BeatRow>(LAST_BEAT, [VERSION.number]);
      return (
        beat && {
          lag: { events: beat.lag_events, ms: beat.lag_ms },
          silent_ms: beat.silent_ms,
        }
      );
    },
    otherVersionWritten: async () =>
      (await rows(`SELECT FROM ${lockIsHeldBy('writer')} WHERE version <> $1`, [VERSION.number]))
        .length > 0,
    logChanged: follower.logChanged,
    untilShown: follower.untilShown,
    close: () => (closing ??= Promise.all([follower.close(), pool.end()]).then(() => undefined)),
  };
}
