import { expect, test } from '@jest/globals';
import { requireAccountRoom } from '../../../../shared/accounts/openManagedAccount.ts';
import { KEY_LIMITS } from '../../../../shared/accounts/limits.ts';

const withAccounts = (count: number) =>
  requireAccountRoom({ readModels: { countAccounts: async () => count } as never });

test('an account is opened through the API only while there are fewer than the limit', async () => {
  const { opened } = KEY_LIMITS.accounts;
  await expect(withAccounts(opened - 1)).resolves.toBeUndefined();
  await expect(withAccounts(opened)).rejects.toMatchObject({ code: 'account_limit_reached' });
});
