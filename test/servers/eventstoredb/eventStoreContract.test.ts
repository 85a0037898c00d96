import { openEventStoreDb } from '../../../infra/eventstoredb/eventStore.ts';
import { startEventStoreDbServer } from '../../support/servers/eventstoredb/eventStoreDbServer.ts';
import { eventStoreContract } from '../../contracts/eventStore.ts';

eventStoreContract('EventStoreDB', async () => {
  const server = await startEventStoreDbServer();
  let store = await openEventStoreDb({ connectionString: server.connectionString });
  return {
    store: () => store,
    async reopen() {
      await store.close();
      store = await openEventStoreDb({ connectionString: server.connectionString });
    },
    async dispose() {
      await store.close();
      await server.close();
    },
  };
});
