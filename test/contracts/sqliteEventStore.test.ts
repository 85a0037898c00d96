import { sqliteEventStoreFixture } from '../support/sqlite/sqliteEventStore.ts';
import { eventStoreContract } from './eventStore.ts';

eventStoreContract('SQLite', sqliteEventStoreFixture);
