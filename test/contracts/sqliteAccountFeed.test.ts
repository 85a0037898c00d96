import { sqliteEventStoreFixture } from '../support/sqlite/sqliteEventStore.ts';
import { accountFeedContract } from './accountFeed.ts';

accountFeedContract('SQLite', sqliteEventStoreFixture);
