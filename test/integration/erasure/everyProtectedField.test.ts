import { readdirSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { openSqliteProjectionStore } from '../../../infra/sqlite/readModels/projectionStore.ts';
import {
  openProtectedStore,
  temporaryFolder,
} from '../../support/stores/sqlite/sqliteEventStore.ts';
import {
  testEveryProtectedField,
  type ErasedStores,
} from '../../support/stores/erasure/everyProtectedField.ts';
import { filesHolding } from '../../support/stores/erasure/holding.ts';

async function open(): Promise<ErasedStores> {
  const folder = await temporaryFolder();
  const log = await openProtectedStore({ folder });
  const projection = await openSqliteProjectionStore({ folder });
  const rows = join(folder, 'read-models');
  return {
    log: () => log,
    projection: () => projection,
    placesHolding: async (text) => filesHolding(rows, text),
    logHolds: async (text) =>
      filesHolding(folder, text).some((file) => !file.startsWith(rows)) ||
      !readdirSync(folder).includes('read-models'),
    async settle() {
      for (let begin = true; ; begin = false) {
        const forgotten = await projection.forget!(begin);
        if (forgotten === 'nothing' || forgotten === 'all') return;
      }
    },
    async close() {
      await projection.close();
      await log.close();
      await rm(folder, { recursive: true });
    },
  };
}

testEveryProtectedField('SQLite', open);
