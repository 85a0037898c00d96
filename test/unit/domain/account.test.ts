import { describe, test } from '@jest/globals';
import { account } from '../../../shared/domain/account/decider.ts';
import type { AccountEvent, KeyData } from '../../../shared/domain/account/events.ts';
import { specification } from '../../support/deciderSpecification.ts';

const given = specification(account);
const key: KeyData = {
  key_id: 'key_1',
  name: 'laptop',
  hash: 'ab',
  scopes: ['agents:read'],
  expires_at: null,
};
const opened: AccountEvent = { type: 'account.opened.v1', data: { name: 'default' } };
const issued: AccountEvent = { type: 'account.key_issued.v1', data: key };
const revoked: AccountEvent = { type: 'account.key_revoked.v1', data: key };

describe('an account', () => {
  test('is opened once', () => {
    given().when({ type: 'open_account', name: 'default' }).then(opened);
    given(opened).when({ type: 'open_account', name: 'again' }).thenRejected('account_exists');
  });

  test('issues keys only after it was opened, and each id once', () => {
    given().when({ type: 'issue_key', key }).thenRejected('account_missing');
    given(opened).when({ type: 'issue_key', key }).then(issued);
    given(opened, issued).when({ type: 'issue_key', key }).thenRejected('key_exists');
    given(opened, issued, revoked).when({ type: 'issue_key', key }).thenRejected('key_exists');
  });

  test('revokes a key that it issued, and says nothing when that is done already', () => {
    given(opened).when({ type: 'revoke_key', key_id: 'key_1' }).thenRejected('key_missing');
    given(opened, issued).when({ type: 'revoke_key', key_id: 'key_1' }).then(revoked);
    given(opened, issued, revoked).when({ type: 'revoke_key', key_id: 'key_1' }).then();
  });
});
