/** A backup of the keys of texts, in each kind of key store. */
import { copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { execute } from '../../servers/postgres/postgresDatabase.ts';
import type { ForgedService } from './forgedService.ts';

async function backUpFile(file: string): Promise<() => Promise<void>> {
  await copyFile(file, `${file}.backup`);
  return async () => {
    for (const suffix of ['-wal', '-shm']) await rm(`${file}${suffix}`, { force: true });
    await copyFile(`${file}.backup`, file);
  };
}

async function backUpTable(databaseUrl: string): Promise<() => Promise<void>> {
  const query = (sql: string, ...values: unknown[]) => execute(databaseUrl, sql, values);
  const [row] = await query('SELECT json_agg(text_keys) AS keys FROM turnlog.text_keys');
  return async () => {
    await query('DELETE FROM turnlog.text_keys');
    await query(
      'INSERT INTO turnlog.text_keys SELECT * FROM json_populate_recordset(NULL::turnlog.text_keys, $1)',
      JSON.stringify(row!['keys']),
    );
  };
}

/** Backs up the keys of a stopped service; the result restores them. */
export const backUpKeys = ({ env, folder }: ForgedService): Promise<() => Promise<void>> =>
  env['DATABASE_URL'] === undefined
    ? backUpFile(join(folder, 'keys.db'))
    : backUpTable(env['DATABASE_URL']);
