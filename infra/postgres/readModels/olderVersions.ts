import type { Client } from 'pg';
import { transaction } from '../connection.ts';
import { readersLock, writerLock } from '../locks.ts';
import { allSchemasOf, VERSION } from './copies.ts';

/**
 * Drops the copies of older versions that no process writes or reads any more: while a release is rolled out, replicas of the
 * one before answer from theirs. Errors: what pg throws.
 */
export async function dropOlderVersions(client: Client): Promise<void> {
  const { rows } = await client.query<{ version: number }>(
    'SELECT DISTINCT version FROM turnlog.projections WHERE version < $1',
    [VERSION],
  );
  for (const { version } of rows) {
    await transaction(client, async () => {
      const locks = [
        writerLock(version, 'live'),
        writerLock(version, 'building'),
        readersLock(version),
      ];
      const held = await client.query<{ unused: boolean }>(
        `SELECT ${locks.map((lock) => `pg_try_advisory_xact_lock(${lock})`).join(' AND ')} AS unused`,
      );
      if (!held.rows[0]?.unused) return;
      for (const schema of allSchemasOf(version))
        await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await client.query('DELETE FROM turnlog.projections WHERE version = $1', [version]);
    });
  }
}
