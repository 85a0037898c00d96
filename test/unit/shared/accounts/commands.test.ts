import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { openAccount } from '../../../../shared/accounts/commands.ts';
import { createOwnKeys } from '../../../../shared/erasure/ownKeys.ts';
import { wordsKeyId } from '../../../../shared/search/wordTokens.ts';
import { handleContext } from '../../../support/stores/handleContext.ts';
import {
  sqliteEventStoreFixture,
  type SqliteEventStoreFixture,
} from '../../../support/stores/sqlite/sqliteEventStore.ts';

let fixture: SqliteEventStoreFixture;
beforeEach(async () => void (fixture = await sqliteEventStoreFixture()));
afterEach(() => fixture.dispose());

test('an opened account has its key of words, which a ciphertext in another stream can’t get destroyed', async () => {
  const context = handleContext(fixture.store(), Date.now());
  const id = wordsKeyId('acct_1');
  const named = { sha256: 'a'.repeat(64), box: `${id}.AAAA` };
  const ownKeys = async (): Promise<string[]> => {
    const found = createOwnKeys(context.store.keys, 'session-forged');
    await found.add([{ data: JSON.stringify({ input: named }) }]);
    return [...found.own];
  };
  // The key does not exist: it would be recorded as destroyed.
  expect(await ownKeys()).toEqual([id]);
  await openAccount(
    context,
    { account_id: 'acct_1', key_id: 'key_1', request_id: 'request_1' },
    'a',
  );
  expect(await ownKeys()).toEqual([]);
});
