/**
 * Runs the API's suites with the log in EventStoreDB: API behaviour must not depend on the store.
 */
import { afterAll } from '@jest/globals';
import { startEventStoreDbServer } from '../../support/servers/eventstoredb/eventStoreDbServer.ts';
import { useEventStoreDb } from '../../support/stores/testStore.ts';

const server = await startEventStoreDbServer();
useEventStoreDb(server.connectionString);

await import('../../integration/runs/runs.test.ts');
await import('../../integration/http/contract.test.ts');
await import('../../integration/http/isolation.test.ts');
await import('../../integration/http/keys.test.ts');
await import('../../integration/runs/modelFaults.test.ts');
await import('../../integration/http/paging.test.ts');
await import('../../integration/runs/turnRequests.test.ts');
await import('../../slow/http/forks.property.test.ts');

// Runs after the suites' own hooks: afterAll hooks run in order of declaration.
afterAll(() => server.close());
