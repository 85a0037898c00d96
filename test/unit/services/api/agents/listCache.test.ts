import { afterEach, expect, jest, test } from '@jest/globals';
import { agentListCache } from '../../../../../services/api/agents/listCache.ts';

afterEach(() => {
  jest.restoreAllMocks();
});

test('the lists of an account are deleted, and those of others neither deleted nor visited', () => {
  const cache = agentListCache({} as never);
  const keyOf = (accountId: string, after: string) => ({
    accountId,
    limit: 1,
    after,
    pretty: false,
  });
  const response = { version: 'v', body: Buffer.from('[]'), nextCursor: undefined };
  for (let number = 0; number < 100; number += 1)
    for (const accountId of ['acct_1', 'acct_2'])
      cache.store(keyOf(accountId, `${number}`), response);
  const parse = jest.spyOn(JSON, 'parse');
  cache.deleteAccount('acct_1');
  expect(parse).not.toHaveBeenCalled();
  expect(cache.find(keyOf('acct_1', '5'), 'v')).toBeUndefined();
  expect(cache.find(keyOf('acct_2', '5'), 'v')).toMatchObject(response);
});
