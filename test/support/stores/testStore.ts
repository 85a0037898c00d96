import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from '@jest/globals';
import { testMasterKeyFile } from './masterKeyFile.ts';
import { testSigningKeyFile } from '../builders/signingKey.ts';

/** Set by a suite that runs other suites with other stores: where these are. */
const VARIABLES = {
  EVENTSTOREDB_URL: 'TURNLOG_TEST_EVENTSTOREDB',
  DATABASE_URL: 'TURNLOG_TEST_DATABASE',
  MASTER_KEY_FILE: 'TURNLOG_TEST_MASTER_KEY',
  KEYS_DIR: 'TURNLOG_TEST_KEYS',
} as const;

/** Has every service and operator of this test file keep its log there. */
export function useEventStoreDb(connectionString: string): void {
  process.env[VARIABLES.EVENTSTOREDB_URL] = connectionString;
  // The log outlasts the services' data folders, and so must the keys of its texts.
  const keys = mkdtempSync(join(tmpdir(), 'turnlog-test-keys-'));
  process.env[VARIABLES.KEYS_DIR] = keys;
  afterAll(() => rmSync(keys, { recursive: true, force: true }));
}

/** Whether this test file's services keep their log in EventStoreDB. */
export const onEventStoreDb = (): boolean => process.env[VARIABLES.EVENTSTOREDB_URL] !== undefined;

/** Has every service and operator of this test file keep its read models there. */
export function usePostgres(databaseUrl: string): void {
  process.env[VARIABLES.DATABASE_URL] = databaseUrl;
  process.env[VARIABLES.MASTER_KEY_FILE] = testMasterKeyFile();
}

/** What the stores of this test file add to a service's environment. */
export function testStoreEnv(): Record<string, string> {
  const stores = Object.entries(VARIABLES).flatMap(([option, variable]) =>
    process.env[variable] === undefined ? [] : [[option, process.env[variable]]],
  );
  const shared = process.env[VARIABLES.DATABASE_URL] !== undefined;
  return {
    ...Object.fromEntries(stores),
    // On a busy machine a server in the same process takes longer than the default for a large event.
    ...(onEventStoreDb() && { STORE_WAIT_MS: '30000' }),
    ...(shared && { LOG_SIGNING_KEY_FILE: testSigningKeyFile() }),
  };
}
