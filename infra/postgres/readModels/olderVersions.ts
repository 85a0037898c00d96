import type { Client } from 'pg';
import type { Version } from '../../../shared/readModels/version.ts';
import { transaction } from '../connection.ts';
import { readersLock, writerLock } from '../leases/locks.ts';
import { dropGeneration } from './generations.ts';

/**
 * The versions that were first made before this one and that no instance in the list reads. While
 * an instance is in the list that has not said which version it reads, there are none.
 */
async function outlived(client: Client, { number }: Version): Promise<number[]> {
  const { rows } = await client.query<{ version: number }>(
    `SELECT version FROM turnlog.projections GROUP BY version
     HAVING min(made_at) < (SELECT min(made_at) FROM turnlog.projections WHERE version = $1)
       AND NOT EXISTS (SELECT FROM turnlog.instances WHERE coalesce(read_models, version) = version)`,
    [number],
  );
  return rows.map(({ version }) => version);
}

/**
 * Drops the older versions that no process writes or reads any more: while a release is rolled out,
 * replicas of the one before answer from theirs. Locks tell of the processes that are connected,
 * the list of instances of those that a restart of the server has cut off for a moment. A release that is rolled back finds the newer
 * version younger than its own, and leaves it alone; where its own was dropped, it makes it anew,
 * and that is the younger one then. Errors: what pg throws.
 */
export async function dropOlderVersions(client: Client, version: Version): Promise<void> {
  for (const number of await outlived(client, version)) {
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
      for (const role of ['live', 'first', 'building', 'retired'] as const)
        await dropGeneration(client, { number }, role);
      await client.query('DELETE FROM turnlog.projections WHERE version = $1', [number]);
    });
  }
}
