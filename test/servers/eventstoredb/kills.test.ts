/**
 * Runs the kills with the log in EventStoreDB. The log must not have issued a key yet, so the server
 * is always a new one.
 */
import { rm } from 'node:fs/promises';
import { afterAll } from '@jest/globals';
import { startEventStoreDbProcess } from '../../support/servers/eventstoredb/eventStoreDbProcess.ts';
import { temporaryFolder } from '../../support/stores/sqlite/sqliteEventStore.ts';
import { useEventStoreDb } from '../../support/stores/testStore.ts';

const folder = await temporaryFolder();
const server = await startEventStoreDbProcess({ folder });
useEventStoreDb(server.connectionString);

await import('../../faults/kills.test.ts');

afterAll(async () => {
  await server.kill('SIGTERM');
  await rm(folder, { recursive: true });
});
