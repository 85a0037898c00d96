import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import type { AttemptedTurn, ReplayAttempts } from '../../shared/replays/replayAttempts.ts';
import { connectionOptions } from './connection.ts';
import { withDatabaseErrors } from './failures.ts';

const STATEMENT_MS = 5_000;

/**
 * Keeps attempts in the table `turnlog.replay_attempts`. The connection is not that of the lease, because
 * attempts end after the lease is lost, too. Opens without waiting for the server.
 */
export function openPostgresReplayAttempts(
  databaseUrl: string,
): ReplayAttempts & { close(): Promise<void> } {
  const processId = randomUUID();
  const pool = new Pool({
    ...connectionOptions(databaseUrl, { name: 'turnlog replays', statementMs: STATEMENT_MS }),
    max: 1,
    allowExitOnIdle: true,
  });
  pool.on('error', () => undefined);
  const run = <Row extends object>(sql: string, values: readonly unknown[]): Promise<Row[]> =>
    withDatabaseErrors(async () => (await pool.query<Row>(sql, [...values])).rows);
  const ownKey = ({ session_id, turn }: AttemptedTurn) => [session_id, turn, processId];

  return {
    async countDeaths(turn) {
      const sql = `SELECT count(*) AS deaths FROM turnlog.replay_attempts
        WHERE session_id = $1 AND turn = $2 AND process_id <> $3`;
      const [row] = await run<{ deaths: number }>(sql, ownKey(turn));
      return row!.deaths;
    },
    async begin(turn) {
      const sql = `INSERT INTO turnlog.replay_attempts (session_id, turn, process_id, replay_id)
        VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`;
      await run(sql, [...ownKey(turn), turn.replay_id]);
    },
    async end(turn) {
      const sql = `DELETE FROM turnlog.replay_attempts
        WHERE session_id = $1 AND turn = $2 AND process_id = $3`;
      await run(sql, ownKey(turn));
    },
    async keepOnly(replayIds) {
      await run('DELETE FROM turnlog.replay_attempts WHERE replay_id <> ALL ($1)', [replayIds]);
    },
    close: async () => {
      if (!pool.ending) await pool.end();
    },
  };
}
