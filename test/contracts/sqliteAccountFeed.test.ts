import { sqliteEventStoreFixture } from '../support/stores/sqlite/sqliteEventStore.ts';
import { accountFeedContract } from './accountFeed.ts';

accountFeedContract('SQLite', sqliteEventStoreFixture);
