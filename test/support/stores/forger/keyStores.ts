/** Services whose keys of texts can be backed up and restored, on each kind of key store. */
import { copyFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { testSigningKeyFile } from '../../builders/signingKey.ts';
import type { Script } from '../../fakes/scriptedModel.ts';
import { createTestDatabase, execute } from '../../servers/postgres/postgresDatabase.ts';
import { testMasterKeyFile } from '../masterKeyFile.ts';
import { FORGED_STORES, type ForgedService } from './forgedService.ts';

export interface ServiceWithKeys extends ForgedService {
  /** Backs up the keys of the stopped service; the result restores them. */
  backUpKeys(): Promise<() => Promise<void>>;
}

type Start = (script?: Script) => Promise<ServiceWithKeys>;

const [sqlite, eventStoreDb] = FORGED_STORES;

const onSqliteKeys: Start = async (script) => {
  const service = await sqlite!.start(script);
  const file = join(service.folder, 'keys.db');
  return Object.assign(service, {
    async backUpKeys() {
      await copyFile(file, `${file}.backup`);
      return async () => {
        for (const suffix of ['-wal', '-shm']) await rm(`${file}${suffix}`, { force: true });
        await copyFile(`${file}.backup`, file);
      };
    },
  });
};

const onPostgresKeys =
  (serverUrl: string): Start =>
  async (script) => {
    const database = await createTestDatabase(serverUrl);
    const service = await eventStoreDb!.start(script, {
      DATABASE_URL: database.url,
      MASTER_KEY_FILE: testMasterKeyFile(),
      LOG_SIGNING_KEY_FILE: testSigningKeyFile(),
    });
    const { close } = service;
    const query = (sql: string, ...values: unknown[]) => execute(database.url, sql, values);
    return Object.assign(service, {
      async backUpKeys() {
        const [row] = await query('SELECT json_agg(text_keys) AS keys FROM turnlog.text_keys');
        return async () => {
          await query('DELETE FROM turnlog.text_keys');
          await query(
            'INSERT INTO turnlog.text_keys SELECT * FROM json_populate_recordset(NULL::turnlog.text_keys, $1)',
            JSON.stringify(row!['keys']),
          );
        };
      },
      async close() {
        await close();
        await database.drop();
      },
    });
  };

/** For `describe.each`; without PostgreSQL only the first one. */
export const keyStores = (
  postgresUrl: string | undefined,
): readonly { name: string; start: Start }[] => [
  { name: 'the embedded log and SQLite keys', start: onSqliteKeys },
  ...(postgresUrl === undefined
    ? []
    : [{ name: 'EventStoreDB and PostgreSQL keys', start: onPostgresKeys(postgresUrl) }]),
];
