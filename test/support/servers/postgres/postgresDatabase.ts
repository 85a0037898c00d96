import { randomUUID } from 'node:crypto';
import { Client } from 'pg';

/** Runs one statement on a connection of its own. */
export async function execute(
  databaseUrl: string,
  sql: string,
  parameters: unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql, parameters)).rows;
  } finally {
    await client.end();
  }
}

export interface TestDatabase {
  url: string;
  /** Copies it under a name, in place of an earlier copy, while it has no connections. */
  save: (copy: string) => Promise<void>;
  /** Puts a copy in its place. */
  putBack: (copy: string) => Promise<void>;
  /** Drops it with its copies. */
  drop: () => Promise<void>;
}

/** Makes a database of its own on a server, so that suites can share one that is in use. */
export async function createTestDatabase(serverUrl: string): Promise<TestDatabase> {
  const name = `turnlog_test_${randomUUID().replaceAll('-', '')}`;
  const names = new Set<string>();
  async function create(created: string, more = ''): Promise<void> {
    await execute(serverUrl, `CREATE DATABASE ${created} ${more}`);
    names.add(created);
  }
  const drop = async (dropped: string): Promise<void> =>
    void (await execute(serverUrl, `DROP DATABASE ${dropped} WITH (FORCE)`));
  await create(name);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    async save(copy) {
      const copied = `${name}_${copy}`;
      if (names.has(copied)) await drop(copied);
      await create(copied, `TEMPLATE ${name}`);
    },
    async putBack(copy) {
      await drop(name);
      await create(name, `TEMPLATE ${name}_${copy}`);
    },
    async drop() {
      for (const each of names) await drop(each);
    },
  };
}

const CUT_WITHIN_MS = 10_000;

/**
 * Cuts the connections of one kind to the database, as the server would; resolves, once they are
 * gone, with how many there were.
 */
export const cutConnections = async (
  databaseUrl: string,
  name: 'projector' | 'rebuild' | 'listener' | 'queries' | 'instances' | 'broadcast',
): Promise<number> =>
  (
    await execute(
      databaseUrl,
      `SELECT pg_terminate_backend(pid, ${CUT_WITHIN_MS}) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'turnlog ${name}'`,
    )
  ).length;
