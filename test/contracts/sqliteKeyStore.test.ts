import { rm } from 'node:fs/promises';
import { openSqliteKeyStore } from '../../infra/sqlite/keyStore/keyStore.ts';
import { temporaryFolder } from '../support/stores/sqlite/sqliteEventStore.ts';
import { keyStoreContract } from './keyStore.ts';

keyStoreContract('SQLite', async () => {
  const folder = await temporaryFolder();
  return {
    open: () => openSqliteKeyStore({ folder }),
    dispose: () => rm(folder, { recursive: true }),
  };
});
