import { readdirSync, readFileSync } from 'node:fs';
import type { Client } from 'pg';
import { runInTransaction } from './connection.ts';
import { retry } from '../../shared/lib/time/backoff.ts';
import { storeUnavailableError } from '../../shared/lib/errors/turnlogError.ts';
import { isLockedByOthers, isMissingRight, missingRightError } from './failures.ts';
import { SCHEMA_LOCK } from './leases/locks.ts';

/**
 * How long a migration waits for a table that is in use: later queries, even reads, queue behind
 * it. A backup may read for hours.
 */
const LOCK_MS = 1_000;
const MAX_ATTEMPTS = 10;
const PAUSES = { firstMs: 1_000, longestMs: 1_000 };

const FOLDER = new URL('migrations/', import.meta.url);

/** The migration files `NNN_what.sql`, in numeric order. */
const migrations = (): { number: number; file: string }[] =>
  readdirSync(FOLDER)
    .filter((file) => /^\d{3}_.*\.sql$/.test(file))
    .toSorted()
    .map((file) => ({ number: Number(file.slice(0, 3)), file }));

/** False if the database was never migrated. */
export async function hasTables(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ there: boolean }>(
    "SELECT to_regclass('turnlog.migrations') IS NOT NULL AS there",
  );
  return rows[0]?.there ?? false;
}

async function highestApplied(client: Client): Promise<number> {
  if (!(await hasTables(client))) return 0;
  const applied = await client.query<{ number: number | null }>(
    'SELECT max(number) AS number FROM turnlog.migrations',
  );
  return applied.rows[0]?.number ?? 0;
}

/**
 * Migrates the schema `turnlog`. Any number of processes may do so at once: they run one after the
 * other, and the later ones find nothing to do. A database that a newer release has migrated, or
 * that has all migrations, is left unchanged, whatever rights the role has. Throws
 * `configuration_invalid` if the role lacks a right, `store_unavailable` if the tables stay in use,
 * and pg's errors.
 */
export async function migrate(client: Client): Promise<void> {
  try {
    await retry(() => migrateAsOwner(client), {
      pauses: PAUSES,
      shouldRetry: (error, failures) => isLockedByOthers(error) && failures < MAX_ATTEMPTS,
    });
  } catch (error) {
    if (isLockedByOthers(error))
      throw storeUnavailableError(
        "PostgreSQL can't be migrated now: another session, a backup perhaps, uses the tables of the schema turnlog.",
        error,
      );
    throw isMissingRight(error) ? missingRightError((error as Error).message, error) : error;
  }
}

async function migrateAsOwner(client: Client): Promise<void> {
  const allMigrations = migrations();
  if ((await highestApplied(client)) >= (allMigrations.at(-1)?.number ?? 0)) return;
  await runInTransaction(client, async () => {
    await client.query(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`);
    await client.query(`SET LOCAL lock_timeout = ${LOCK_MS}`);
    await client.query(`CREATE SCHEMA IF NOT EXISTS turnlog;
      CREATE TABLE IF NOT EXISTS turnlog.migrations (number integer PRIMARY KEY, file text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`);
    const applied = await highestApplied(client);
    for (const { number, file } of allMigrations.filter(
      (migration) => migration.number > applied,
    )) {
      await client.query(readFileSync(new URL(file, FOLDER), 'utf8'));
      await client.query('INSERT INTO turnlog.migrations (number, file) VALUES ($1, $2)', [
        number,
        file,
      ]);
    }
  });
}
