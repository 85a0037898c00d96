import { sqliteEventStoreFixture } from '../support/sqliteEventStore.ts';
import { eventStoreContract } from './eventStore.ts';

eventStoreContract('SQLite', sqliteEventStoreFixture);
