import { rm } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { openSqliteRowCopy } from '../../../../../infra/sqlite/readModels/verification.ts';
import { BEGINNING } from '../../../../../shared/readModels/integrity/verificationState.ts';
import { temporaryFolder } from '../../../../support/stores/sqlite/sqliteEventStore.ts';

test('a failure of SQLite in a copy is store_unavailable, which the command line explains', async () => {
  const folder = await temporaryFolder();
  try {
    const copy = await openSqliteRowCopy({ folder });
    await copy.saveState(BEGINNING);
    await copy.close();
    for (const use of [copy.state, copy.startOver, () => copy.saveState(BEGINNING)])
      await expect(use()).rejects.toMatchObject({ code: 'store_unavailable' });
  } finally {
    await rm(folder, { recursive: true });
  }
});
