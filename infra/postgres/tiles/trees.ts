import type { Client, QueryResultRow } from 'pg';
import { storeUnavailableError } from '../../../shared/lib/errors/turnlogError.ts';
import type { ActiveTrees, Growth, TileStore } from '../../../shared/transparency/tileStore.ts';
import { parseTilePath, TILE_WIDTH } from '../../../shared/transparency/tlog/tiles.ts';
import { runInTransaction } from '../connection.ts';
import { withDatabaseErrors } from '../failures.ts';
import { PROVER_LOCK } from '../leases/locks.ts';
import { awaitLeaseSession, type LeaseSession, type LeaseWait } from '../leases/leaseSession.ts';
import { tileReaderOver, type FirstRow } from './reader.ts';

const OPEN = `INSERT INTO turnlog.tlog_trees (origin, opened)
  SELECT $1, coalesce(max(opened), 0) + 1 FROM turnlog.tlog_trees
  ON CONFLICT (origin) DO UPDATE SET opened = excluded.opened
    WHERE tlog_trees.opened < (SELECT max(opened) FROM turnlog.tlog_trees)`;

/**
 * Updates only a tree of the expected size, so that a process that has lost the lock writes
 * nothing.
 */
const STATE = `UPDATE turnlog.tlog_trees SET size = $3, checkpoint = $4 WHERE origin = $1 AND size = $2`;

const TILES = `INSERT INTO turnlog.tlog_tiles (origin, path, bytes)
  SELECT $1, path, bytes FROM unnest($2::text[], $3::bytea[]) AS new (path, bytes)
  ON CONFLICT (origin, path) DO UPDATE SET bytes = excluded.bytes`;

const BUNDLES = `INSERT INTO turnlog.tlog_bundles (origin, bundle, before)
  SELECT $1, bundle, before FROM unnest($2::bigint[], $3::text[]) AS new (bundle, before)
  ON CONFLICT (origin, bundle) DO UPDATE SET before = excluded.before`;

const UNKNOWN = `SELECT min(due.bundle) AS bundle FROM generate_series(1, $2::bigint - 1) AS due (bundle)
  WHERE NOT EXISTS (SELECT FROM turnlog.tlog_bundles AS known
    WHERE known.origin = $1 AND known.bundle = due.bundle)`;

/** Deletes the partial tiles that full ones replace: '0' is the character after '/'. */
const CLEAR = `DELETE FROM turnlog.tlog_tiles USING unnest($2::text[]) AS new (full_path)
  WHERE origin = $1 AND path >= full_path || '.p/' AND path < full_path || '.p0'`;

async function putBundles(
  client: Client,
  origin: string,
  bundles: Growth['bundles'],
): Promise<void> {
  const starts = Array.from(bundles.values(), (before) => JSON.stringify(before));
  if (starts.length > 0) await client.query(BUNDLES, [origin, [...bundles.keys()], starts]);
}

async function write(client: Client, origin: string, growth: Growth): Promise<void> {
  const { from, files, bundles, state } = growth;
  const checkpoint = state.checkpoint && JSON.stringify(state.checkpoint);
  const { rowCount } = await client.query(STATE, [origin, from, state.size, checkpoint]);
  if (rowCount !== 1)
    throw storeUnavailableError(
      `The tree ${origin} no longer has ${from} leaves: another has grown it.`,
    );
  const paths = files.map(({ path }) => path);
  await client.query(TILES, [origin, paths, files.map(({ bytes }) => Buffer.from(bytes))]);
  await putBundles(client, origin, bundles);
  const fullPaths = paths.filter((path) => parseTilePath(path)?.width === TILE_WIDTH);
  if (fullPaths.length > 0) await client.query(CLEAR, [origin, fullPaths]);
}

function treeOf(session: LeaseSession, origin: string): TileStore {
  const first: FirstRow = <Row extends QueryResultRow>(text: string, values: readonly unknown[]) =>
    withDatabaseErrors(() =>
      session.run(async (client) => (await client.query<Row>(text, [...values])).rows[0]),
    );
  return {
    ...tileReaderOver(first, origin),
    grow: (growth) =>
      withDatabaseErrors(() =>
        session.run((client) => runInTransaction(client, () => write(client, origin, growth))),
      ),
    async firstUnknownBundle(bundles) {
      const row = await first<{ bundle: number | null }>(UNKNOWN, [origin, bundles]);
      return row?.bundle ?? undefined;
    },
    putBundles: (bundles) =>
      withDatabaseErrors(() => session.run((client) => putBundles(client, origin, bundles))),
    async publish(note) {
      await first('UPDATE turnlog.tlog_trees SET note = $2 WHERE origin = $1', [origin, note]);
    },
  };
}

/**
 * Waits until this process holds the lease to grow the trees. Resolves with undefined if the signal
 * aborts first. The methods throw `store_unavailable`.
 */
export async function acquireProverLease(options: LeaseWait): Promise<ActiveTrees | undefined> {
  const session = await awaitLeaseSession({
    ...options,
    name: 'turnlog prover',
    lock: PROVER_LOCK,
  });
  return (
    session && {
      lost: session.lost,
      close: session.close,
      async open(origin) {
        await withDatabaseErrors(() => session.run((client) => client.query(OPEN, [origin])));
        return treeOf(session, origin);
      },
    }
  );
}
