import { Pool } from 'pg';
import { BEAT_MS, type DeadInstance, type Instances } from '../../../shared/ports/instances.ts';
import { connectPostgres, connectionOptions } from '../connection.ts';
import { withDatabaseErrors } from '../failures.ts';
import { migrate } from '../migrate.ts';
import { VERSION } from '../readModels/schema.ts';

/** Less than the beat interval: a hanging statement must not delay the next beat. */
const STATEMENT_MS = 3000;

/** Also records the version of the read models, so that no other release drops it. */
const BEAT = `INSERT INTO turnlog.instances (instance_id, started_at, last_beat_at, read_models) VALUES ($1, clock_timestamp(), clock_timestamp(), ${VERSION.number})
  ON CONFLICT (instance_id) DO UPDATE SET last_beat_at = excluded.last_beat_at`;

/** Text with microseconds, which distinguishes a beat from the previous one. */
const LAST_BEAT = `to_char(last_beat_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

/**
 * Opens the table with the instances of all replicas. Times are the database's. Throws
 * `store_unavailable` if the server can't be reached.
 */
export async function openPostgresInstances({
  databaseUrl,
  beatMs = BEAT_MS,
}: {
  databaseUrl: string;
  beatMs?: number;
}): Promise<Instances> {
  await withDatabaseErrors(async () => {
    const { client, close } = await connectPostgres(databaseUrl, {
      name: 'turnlog instances',
      statementMs: STATEMENT_MS,
    });
    try {
      await migrate(client);
    } finally {
      await close();
    }
  });
  const pool = new Pool({
    ...connectionOptions(databaseUrl, { name: 'turnlog instances', statementMs: STATEMENT_MS }),
    max: 2,
    allowExitOnIdle: true,
  });
  pool.on('error', () => undefined);
  const beatTimers = new Map<string, NodeJS.Timeout>();

  const stop = (instanceId: string): void => {
    clearInterval(beatTimers.get(instanceId));
    beatTimers.delete(instanceId);
  };

  return {
    async register(instanceId) {
      const beat = () => withDatabaseErrors(() => pool.query(BEAT, [instanceId]));
      await beat();
      stop(instanceId);
      beatTimers.set(
        instanceId,
        setInterval(() => void beat().catch(() => undefined), beatMs).unref(),
      );
      return {
        async end() {
          stop(instanceId);
          await withDatabaseErrors(() =>
            pool.query('DELETE FROM turnlog.instances WHERE instance_id = $1', [instanceId]),
          );
        },
      };
    },
    listDeadInstances: (olderThanMs) =>
      withDatabaseErrors(async () => {
        const result = await pool.query<DeadInstance>(
          `SELECT instance_id, ${LAST_BEAT} AS last_beat_at FROM turnlog.instances
           WHERE last_beat_at < clock_timestamp() - $1 * interval '1 millisecond' ORDER BY instances.last_beat_at`,
          [olderThanMs],
        );
        return result.rows;
      }),
    list: () =>
      withDatabaseErrors(async () => {
        const { rows } = await pool.query<{ now: number; ids: string[] }>(
          `SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
             ARRAY(SELECT instance_id FROM turnlog.instances) AS ids`,
        );
        const [{ now, ids } = { now: 0, ids: [] }] = rows;
        return { now, ids: new Set(ids) };
      }),
    forget: ({ instance_id, last_beat_at }) =>
      withDatabaseErrors(async () => {
        await pool.query(
          `DELETE FROM turnlog.instances WHERE instance_id = $1 AND ${LAST_BEAT} = $2`,
          [instance_id, last_beat_at],
        );
      }),
    async close() {
      for (const instanceId of beatTimers.keys()) stop(instanceId);
      if (!pool.ending) await pool.end();
    },
  };
}
