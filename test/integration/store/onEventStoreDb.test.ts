/**
 * Runs the API's suites with the log in EventStoreDB: API behaviour must not depend on the store.
 */
import { afterAll } from '@jest/globals';
import { startEventStoreDbServer } from '../../support/eventstoredb/eventStoreDbServer.ts';
import { useEventStoreDb } from '../../support/store/testStore.ts';

const server = await startEventStoreDbServer();
useEventStoreDb(server.connectionString);

await import('../runs/runs.test.ts');
await import('../http/contract.test.ts');
await import('../http/isolation.test.ts');
await import('../http/keys.test.ts');
await import('../runs/modelFaults.test.ts');
await import('../http/paging.test.ts');
await import('../runs/turnRequests.test.ts');
await import('../http/forks.property.test.ts');

// Runs after the suites' own hooks: afterAll hooks run in order of declaration.
afterAll(() => server.close());
