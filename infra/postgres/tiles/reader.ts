import { randomUUID } from 'node:crypto';
import { Pool, type QueryResultRow } from 'pg';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import {
  proofInvalidError,
  storeUnavailableError,
} from '../../../shared/lib/errors/turnlogError.ts';
import type { TransparencyFinding, TransparencyFindings } from '../../../shared/health/health.ts';
import {
  parseIndexCheckpoint,
  type TileReader,
  type TreeState,
} from '../../../shared/transparency/tileStore.ts';
import { connectionOptions } from '../connection.ts';
import { isAway, isMissing, sqlState, withDatabaseErrors } from '../failures.ts';

const STATEMENT_MS = 5_000;
const CONNECTIONS = 2;

/** Runs a query and resolves with its rows. */
type AllRows = <Row extends QueryResultRow>(
  text: string,
  values: readonly unknown[],
) => Promise<Row[]>;

/** Runs a query and resolves with its first row. */
export type FirstRow = <Row extends QueryResultRow>(
  text: string,
  values: readonly unknown[],
) => Promise<Row | undefined>;

/** The current origin, which is the one that was opened last. */
const CURRENT = '(SELECT origin FROM turnlog.tlog_trees ORDER BY opened DESC LIMIT 1)';

/** The checkpoint in a row. Throws `proof_invalid`, with this sentence, for any other value. */
function parsed(text: unknown, sentence: string): Checkpoint {
  const checkpoint = typeof text === 'string' ? parseIndexCheckpoint(text) : undefined;
  if (!checkpoint) throw proofInvalidError(sentence);
  return checkpoint;
}

/** The state in a row. Throws `proof_invalid` for one that does not name the event of its last leaf. */
function stateIn({ size, checkpoint }: { size: number; checkpoint: string | null }): TreeState {
  if (size === 0 && checkpoint === null) return { size, checkpoint: undefined };
  const sentence =
    'The table turnlog.tlog_trees does not say how large the tree is. Put it back from a backup.';
  if (!(size > 0)) throw proofInvalidError(sentence);
  return { size, checkpoint: parsed(checkpoint, sentence) };
}

/**
 * Reads the tree of an origin, by default of the current one. The methods throw the errors of
 * `first`.
 */
export function tileReaderOver(first: FirstRow, origin?: string): TileReader {
  const tree = origin === undefined ? CURRENT : '$1';
  const originParameter = origin === undefined ? [] : [origin];
  const placeholder = `$${originParameter.length + 1}`;
  return {
    async read(path) {
      const text = `SELECT bytes FROM turnlog.tlog_tiles WHERE origin = ${tree} AND path = ${placeholder}`;
      return (await first<{ bytes: Buffer }>(text, [...originParameter, path]))?.bytes;
    },
    async readCheckpoint() {
      const text = `SELECT note FROM turnlog.tlog_trees WHERE origin = ${tree}`;
      return (await first<{ note: string | null }>(text, originParameter))?.note ?? undefined;
    },
    async beforeBundle(bundle) {
      const text = `SELECT before FROM turnlog.tlog_bundles WHERE origin = ${tree} AND bundle = ${placeholder}`;
      const row = await first<{ before: string }>(text, [...originParameter, bundle]);
      const sentence = `The table turnlog.tlog_bundles does not say where bundle ${bundle} begins. Delete its row: a running server writes it again from the log.`;
      return row && parsed(row.before, sentence);
    },
    async state(): Promise<TreeState> {
      const text = `SELECT size, checkpoint FROM turnlog.tlog_trees WHERE origin = ${tree}`;
      const row = await first<{ size: number; checkpoint: string | null }>(text, originParameter);
      return row ? stateIn(row) : { size: 0, checkpoint: undefined };
    },
  };
}

/** Older rows are ignored: their process ended or lost the database. */
const RECENT = "reported_at > clock_timestamp() - interval '15 seconds'";

const REPORT = `WITH gone AS (DELETE FROM turnlog.tlog_findings WHERE NOT ${RECENT} AND reporter <> $1)
  INSERT INTO turnlog.tlog_findings (reporter, reported_at, finding) VALUES ($1, clock_timestamp(), $2)
  ON CONFLICT (reporter) DO UPDATE SET reported_at = excluded.reported_at, finding = excluded.finding`;

const OTHERS = `SELECT finding FROM turnlog.tlog_findings WHERE reporter <> $1 AND ${RECENT} ORDER BY reporter`;

/** Exchanges findings through a database. */
function transparencyFindings(all: AllRows): TransparencyFindings {
  const reporter = randomUUID();
  let isReported = false;

  async function withdraw(): Promise<void> {
    if (isReported) await all('DELETE FROM turnlog.tlog_findings WHERE reporter = $1', [reporter]);
    isReported = false;
  }

  return {
    withdraw,
    async exchange(own) {
      if (own) {
        isReported = true;
        await all(REPORT, [reporter, JSON.stringify(own)]);
      } else await withdraw();
      const rows = await all<{ finding: TransparencyFinding }>(OTHERS, [reporter]);
      return rows.map(({ finding }) => finding);
    },
  };
}

/**
 * Reads the tree that any process grows, on dedicated connections. Opens without waiting for the
 * server. Before the first migration the tree is empty. The methods throw `store_unavailable`.
 */
export function openPostgresTileReader(databaseUrl: string): TileReader & {
  /** Reads the tree of one origin. */
  treeOf(origin: string): TileReader;
  findings: TransparencyFindings;
  close(): Promise<void>;
} {
  const pool = new Pool({
    ...connectionOptions(databaseUrl, { name: 'turnlog tiles', statementMs: STATEMENT_MS }),
    max: CONNECTIONS,
    allowExitOnIdle: true,
  });
  // Without a listener, a broken connection would end the process. The next query reports the
  // failure.
  pool.on('error', () => undefined);
  const all: AllRows = <Row extends QueryResultRow>(text: string, values: readonly unknown[]) =>
    withDatabaseErrors(async () => {
      try {
        return (await pool.query<Row>(text, [...values])).rows;
      } catch (error) {
        if (isMissing(error)) return [];
        if (sqlState(error) === undefined || isAway(error)) throw error;
        throw storeUnavailableError(
          `PostgreSQL refuses to read the transparency log: ${(error as Error).message}.`,
          error,
        );
      }
    });
  const first: FirstRow = async <Row extends QueryResultRow>(
    text: string,
    values: readonly unknown[],
  ) => (await all<Row>(text, values))[0];
  return {
    ...tileReaderOver(first),
    treeOf: (origin) => tileReaderOver(first, origin),
    findings: transparencyFindings(all),
    close: () => pool.end(),
  };
}
