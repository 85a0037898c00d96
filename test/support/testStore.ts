/** Set by a suite that runs other suites with the log in EventStoreDB: the connection string. */
const VARIABLE = 'TURNLOG_TEST_EVENTSTOREDB';

/** Has every service and operator of this test file keep its log there. */
export function useEventStoreDb(connectionString: string): void {
  process.env[VARIABLE] = connectionString;
}

/** What the store of this test file adds to a service's environment. */
export function testStoreEnv(): Record<string, string> {
  const connectionString = process.env[VARIABLE];
  return connectionString === undefined ? {} : { EVENTSTOREDB_URL: connectionString };
}
