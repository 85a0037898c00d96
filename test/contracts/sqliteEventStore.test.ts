import { sqliteEventStoreFixture } from '../support/stores/sqlite/sqliteEventStore.ts';
import { eventStoreContract } from './eventStore.ts';

eventStoreContract('SQLite', sqliteEventStoreFixture);
