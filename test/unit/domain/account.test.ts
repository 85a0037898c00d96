import { describe, test } from '@jest/globals';
import { account, type AccountCommand } from '../../../shared/domain/account/decider.ts';
import { specification } from '../../support/events/deciderSpecification.ts';
import {
  accountErased,
  accountOpened,
  keyData,
  keyIssued,
  keyRevoked,
  limitsSet,
} from '../../support/events/events.ts';

const given = specification(account);
const key = keyData('key_1');
const opened = accountOpened('default');
const issued = keyIssued('key_1');
const revoked = keyRevoked('key_1');

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

  test('issues one key once, whatever id it would have: two replicas may begin with the same one', () => {
    const again = keyData('key_2', { hash: key.hash });
    given(opened, issued).when({ type: 'issue_key', key: again }).thenRejected('key_exists');
    const other = keyData('key_2', { hash: 'cd'.repeat(32) });
    given(opened, issued)
      .when({ type: 'issue_key', key: other })
      .then(keyIssued('key_2', { hash: other.hash }));
  });

  test('revokes a key that it issued, and says nothing when that is done already', () => {
    given(opened).when({ type: 'revoke_key', key_id: 'key_1' }).thenRejected('key_missing');
    given(opened, issued).when({ type: 'revoke_key', key_id: 'key_1' }).then(revoked);
    given(opened, issued, revoked).when({ type: 'revoke_key', key_id: 'key_1' }).then();
  });

  test('sets the limits that are named, keeps the others, and says nothing when it has them already', () => {
    const set = (limits: object) => ({ type: 'set_limits', limits }) as const;
    given()
      .when(set({ runs: 1 }))
      .thenRejected('account_missing');
    given(opened)
      .when(set({ runs: 1 }))
      .then(limitsSet({ runs: 1 }));
    given(opened, limitsSet({ runs: 1 }))
      .when(set({ prompt_bytes: 9 }))
      .then(limitsSet({ runs: 1, prompt_bytes: 9 }));
    given(opened, limitsSet({ runs: 1, prompt_bytes: 9 }))
      .when(set({ runs: null }))
      .then(limitsSet({ prompt_bytes: 9 }));
    given(opened, limitsSet({ runs: 1 }))
      .when(set({ runs: 1 }))
      .then();
    given(opened)
      .when(set({ runs: null }))
      .then();
  });

  test('is erased once, and for good: nothing is opened, issued, revoked or set in it any more', () => {
    const erase: AccountCommand = { type: 'erase_account', key_ids: ['k'], note: 'asked for' };
    const erased = accountErased({ key_ids: ['k'], note: 'asked for' });
    given().when(erase).thenRejected('account_missing');
    given(opened, issued).when(erase).then(erased);
    given(opened, issued, erased).when(erase).then();
    const past = given(opened, issued, erased);
    past.when({ type: 'open_account', name: 'again' }).thenRejected('account_exists');
    past.when({ type: 'issue_key', key: keyData('key_2') }).thenRejected('account_erased');
    past.when({ type: 'revoke_key', key_id: 'key_1' }).thenRejected('account_erased');
    past.when({ type: 'set_limits', limits: { runs: 1 } }).thenRejected('account_erased');
  });
});
