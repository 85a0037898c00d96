import type { Client } from 'pg';
import type { Version } from '../../../shared/readModels/version.ts';
import { transaction } from '../connection.ts';
import { readersLock, writerLock } from '../locks.ts';
import { allSchemasOf } from './version.ts';

/** The versions that were first made before this one. */
async function olderThan(client: Client, { number }: Version): Promise<number[]> {
  const { rows } = await client.query<{ version: number }>(
    `SELECT version FROM turnlog.projections GROUP BY version
     HAVING min(made_at) < (SELECT min(made_at) FROM turnlog.projections WHERE version = $1)`,
    [number],
  );
  return rows.map(({ version }) => version);
}

/**
 * Drops the older versions that no process writes or reads any more: while a release is rolled out,
 * replicas of the one before answer from theirs. A release that is rolled back finds the newer
 * version younger than its own, and leaves it alone; where its own was dropped, it makes it anew,
 * and that is the younger one then. Errors: what pg throws.
 */
export async function dropOlderVersions(client: Client, version: Version): Promise<void> {
  for (const number of await olderThan(client, version)) {
    await transaction(client, async () => {
      const locks = [
        writerLock(number, 'live'),
        writerLock(number, 'building'),
        readersLock(number),
      ];
      const held = await client.query<{ unused: boolean }>(
        `SELECT ${locks.map((lock) => `pg_try_advisory_xact_lock(${lock})`).join(' AND ')} AS unused`,
      );
      if (!held.rows[0]?.unused) return;
      for (const schema of allSchemasOf({ number }))
        await client.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await client.query('DELETE FROM turnlog.projections WHERE version = $1', [number]);
    });
  }
}
